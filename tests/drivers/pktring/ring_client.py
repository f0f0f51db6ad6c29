# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Sluice developers
"""The client library, as a program in another language has it: libsluice-client.so through ctypes."""
import ctypes
import sys
import time


class Conf(ctypes.Structure):
    _fields_ = [('path', ctypes.c_char_p), ('queue', ctypes.c_uint16), ('version', ctypes.c_int),
                ('loss', ctypes.c_bool), ('frame_size', ctypes.c_uint32),
                ('tx_frames', ctypes.c_uint32), ('rx_frames', ctypes.c_uint32)]


class Info(ctypes.Structure):
    _fields_ = [('queue', ctypes.c_uint16), ('mtu', ctypes.c_uint16), ('mac', ctypes.c_uint8 * 6),
                ('tx_frames', ctypes.c_uint32), ('rx_frames', ctypes.c_uint32),
                ('tx_room', ctypes.c_uint32)]


class Frame(ctypes.Structure):
    _fields_ = [('data', ctypes.c_void_p), ('len', ctypes.c_uint32), ('wire_len', ctypes.c_uint32),
                ('status', ctypes.c_uint32)]


def load(path):
    lib = ctypes.CDLL(path)
    lib.sl_client_tx_next.restype = ctypes.c_void_p
    for name in ('close', 'info', 'tx_next', 'tx_submit', 'kick', 'tx_busy', 'tx_refused', 'rx_next',
                 'rx_done', 'wait', 'gone'):
        getattr(lib, f'sl_client_{name}').argtypes = [ctypes.c_void_p]
    lib.sl_client_info.argtypes = [ctypes.c_void_p, ctypes.POINTER(Info)]
    lib.sl_client_tx_submit.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    lib.sl_client_rx_next.argtypes = [ctypes.c_void_p, ctypes.POINTER(Frame)]
    lib.sl_client_wait.argtypes = [ctypes.c_void_p, ctypes.c_int]
    lib.sl_client_gone.restype = ctypes.c_bool
    return lib


class Client:
    """Rings at the port whose socket is at `path`; version is 1, 2 or 3."""

    def __init__(self, lib, path, version=2, tx=0, rx=0, frame_size=0, queue=0xffff):
        self.lib, self.handle = lib, ctypes.c_void_p()
        conf = Conf(path.encode(), queue, version - 1, False, frame_size, tx, rx)
        why = ctypes.c_char_p()
        ret = lib.sl_client_connect(ctypes.byref(conf), ctypes.byref(self.handle), ctypes.byref(why))
        if ret:
            raise OSError(-ret, (why.value or b'').decode())
        self.info = Info()
        lib.sl_client_info(self.handle, ctypes.byref(self.info))

    def send(self, frame):
        """False while the next slot is not free."""
        slot = self.lib.sl_client_tx_next(self.handle)
        if not slot:
            return False
        ctypes.memmove(slot, frame, len(frame))
        self.lib.sl_client_tx_submit(self.handle, len(frame))
        self.lib.sl_client_kick(self.handle)
        return True

    def receive(self, patience):
        """The next frame, or None."""
        f = Frame()
        end = time.monotonic() + patience
        while not self.lib.sl_client_rx_next(self.handle, ctypes.byref(f)):
            left = end - time.monotonic()
            if left <= 0:
                return None
            # Not longer: a V3 block is retired by the next burst, not by a bell alone.
            self.lib.sl_client_wait(self.handle, min(100, int(left * 1000) + 1))
        assert f.len == f.wire_len, f'{f.len} of {f.wire_len} bytes'
        data = ctypes.string_at(f.data, f.len)
        self.lib.sl_client_rx_done(self.handle)
        return data

    def busy(self):
        return self.lib.sl_client_tx_busy(self.handle)

    def refused(self):
        return self.lib.sl_client_tx_refused(self.handle)

    def settled(self, patience):
        """Every slot comes back, and none was refused. The port frees after it has forwarded."""
        end = time.monotonic() + patience
        while self.busy() and time.monotonic() < end:
            time.sleep(0.001)
        return self.busy() == 0 and self.refused() == 0

    def gone(self):
        return self.lib.sl_client_gone(self.handle)

    def close(self):
        self.lib.sl_client_close(self.handle)


def main(run, rig):
    """Run a script's tests; its first argument is the plugin, which a stock program must load."""
    with open(sys.argv[1], 'rb') as f:
        plugin = f.read()
    if b'__asan_init' in plugin or b'__tsan_init' in plugin:
        print('SKIP all: a stock program cannot load a plugin that was built with a sanitizer')
        print('0 passed, 0 failed, 1 skipped')
        sys.exit(0)
    rig.main(run)
