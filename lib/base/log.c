/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include "sl_log.h"

RTE_LOG_REGISTER(sl_logtype, sluice, NOTICE)
