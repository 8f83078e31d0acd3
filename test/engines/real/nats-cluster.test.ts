/**
 * Three servers of NATS: its guarantees while the leader is killed and paused, and the network splits.
 * @module-tag long
 */

import { triesClusterGuarantees } from "./guarantees.ts";
import { natsCluster } from "./nats-cluster.ts";

triesClusterGuarantees("nats", natsCluster, 40_000);
