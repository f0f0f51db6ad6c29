/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_DPDK_H
#define SL_DPDK_H

/**
 * @file
 * What differs between the DPDK releases that we build on (22.11 to the newest long-term one).
 * Version tests stand here and nowhere else.
 *
 * Stability: stable (doc/api.md).
 */

#include <string.h>

#include <rte_ip.h>
#include <rte_telemetry.h>
#include <rte_version.h>

#include "sl_base.h"

#if RTE_VERSION < RTE_VERSION_NUM(22, 11, 0, 0)
#error "Sluice needs DPDK 22.11 or newer"
#endif

/* rte_tel_data_add_dict_u64 became _uint in 23.03; the old name left in 25.11. */
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
#define sl_tel_dict_u64(d, name, v) rte_tel_data_add_dict_uint((d), (name), (v))
#else
#define sl_tel_dict_u64(d, name, v) rte_tel_data_add_dict_u64((d), (name), (v))
#endif

/* An IPv6 address, and an array of such, as rte_fib6 takes them: bytes became a struct of them in 24.11. */
#if RTE_VERSION >= RTE_VERSION_NUM(24, 11, 0, 0)
#define sl_fib6_addr(bytes) ((const struct rte_ipv6_addr *)(bytes))
#define sl_fib6_addrs(bytes) ((const struct rte_ipv6_addr *)(bytes))
#else
#define sl_fib6_addr(bytes) (bytes)
#define sl_fib6_addrs(bytes) ((uint8_t(*)[16])(bytes))
#endif

#endif
