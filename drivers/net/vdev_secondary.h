/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef VDEV_SECONDARY_H
#define VDEV_SECONDARY_H

/**
 * @file
 * What a secondary process has of a port whose rings and descriptors the primary process keeps.
 */

#include <errno.h>

#include <bus_vdev_driver.h>
#include <ethdev_driver.h>
#include <ethdev_vdev.h>

/**
 * Attach to the primary's port, with no data path.
 *
 * @param ops   what works without the primary's memory
 * @return      0; -ENODEV: the primary process has no such port, which is for the driver's log
 * Caller: the driver's probe, in a secondary process.
 */
static inline int
vdev_secondary_attach(struct rte_vdev_device *vdev, const struct eth_dev_ops *ops)
{
	struct rte_eth_dev *dev = rte_eth_dev_attach_secondary(rte_vdev_device_name(vdev));

	if (dev == NULL)
		return -ENODEV;
	dev->dev_ops = ops;
	dev->device = &vdev->device;
	dev->rx_pkt_burst = rte_eth_pkt_burst_dummy;
	dev->tx_pkt_burst = rte_eth_pkt_burst_dummy;
	rte_eth_dev_probing_finish(dev);
	return 0;
}

#endif
