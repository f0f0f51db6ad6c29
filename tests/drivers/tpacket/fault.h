/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef FAULT_H
#define FAULT_H

extern int fault_calls;	 /* that many calls of sendto fail from now on */
extern int fault_errno;	 /* with this */
extern int fault_option; /* setting this option is refused, 0: none is */
extern int fault_nth; /* the call of that number among socket, setsockopt and bind fails, 0: none */

#endif
