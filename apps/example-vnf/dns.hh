/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

namespace dns {

using namespace std::string_view_literals;
constexpr std::size_t query_max = 512, growth = 28, header = 12;
enum : std::uint8_t { noerror, formerr, nxdomain = 3, notimp, refused };

/* As on the wire, names in lower case. One record of a name and type: no answer grows beyond `growth`. */
struct record {
	std::string_view name, type, data;
};
inline constexpr auto a = "\0\1"sv, aaaa = "\0\34"sv, in = "\0\1"sv, apex = "\7example\4test\0"sv;
inline constexpr record zone[] = {
	{apex, a, "\xc0\x00\x02\x01"sv},
	{"\3www\7example\4test\0"sv, a, "\xc0\x00\x02\x50"sv},
	{"\3www\7example\4test\0"sv, aaaa, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x80"sv},
	{"\2v6\7example\4test\0"sv, aaaa, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x06"sv},
};

inline bool
same(std::string_view ours, std::string_view theirs)
{
	auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; };

	return std::ranges::equal(ours, theirs, {}, {}, lower);
}

/* Octets of the name that is asked for; 0 for a pointer, or a name that is too long or does not end. */
inline std::size_t
name_size(std::string_view rest)
{
	std::size_t at = 0;

	while (at < rest.size() && rest[at] > 0 && rest[at] < 64)
		at += std::size_t(rest[at]) + 1;
	return at < rest.size() && rest[at] == 0 && at < 255 ? at + 1 : 0;
}

/* What the zone says of a name, and its octets of that type. */
inline std::uint8_t
look_up(std::string_view name, std::string_view type, std::string_view &data)
{
	std::uint8_t code = refused;

	for (auto rest = name; !rest.empty(); rest.remove_prefix(std::size_t(rest[0]) + 1))
		if (same(apex, rest))
			code = nxdomain;
	for (const record &r : zone) {
		if (!same(r.name, name))
			continue;
		code = noerror;
		if (r.type == type)
			data = r.data;
	}
	return code;
}

/* Turn the query of `len` octets in m, which has `growth` more, into its answer. Returns the answer's
 * length, or 0: no answer at all. */
inline std::size_t
answer(std::span<char> m, std::size_t len)
{
	const std::string_view query(m.data(), len);
	std::string_view data;
	std::size_t end = header;
	std::uint8_t code = notimp;
	auto put = [&](std::size_t at, std::string_view text) { std::ranges::copy(text, &m[at]); };

	if (len < header || (m[2] & 0x80))
		return 0; /* who answers answers does so for ever */
	if ((m[2] & 0x78) == 0) {
		const std::size_t size = name_size(query.substr(header));
		const bool more = query.substr(10, 2) != "\0\0"sv; /* EDNS: neither read nor answered */
		const bool one = query.substr(4, 6) == "\0\1\0\0\0\0"sv; /* question, no records */

		end += size + 4;
		if (size == 0 || end > len || (end < len && !more) || !one) {
			code = formerr;
			end = header;
		} else if (query.substr(end - 2, 2) != in) {
			code = refused;
		} else {
			code = look_up(query.substr(header, size), query.substr(end - 4, 2), data);
		}
	}
	m[2] = char(0x80 | (m[2] & 0x79) | (code % nxdomain == 0 ? 4 : 0)); /* authoritative */
	m[3] = char(code);
	put(4, "\0\0\0\0\0\0\0\0"sv);
	m[5] = end > header;
	if (data.empty())
		return end;
	m[7] = 1;
	put(end, "\xc0\x0c\0\0\0\1\0\0\1\54\0"sv); /* the question's name, class IN, 300 s to live */
	m[end + 3] = m[end - 3];
	m[end + 11] = char(data.size());
	put(end + 12, data);
	return end + 12 + data.size();
}

} // namespace dns
