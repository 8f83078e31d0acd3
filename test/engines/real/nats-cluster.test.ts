/**
 * Three servers of NATS: its guarantees while the leader is killed and paused, and the network splits.
 * @module-tag long
 */

import { natsCluster } from "./cluster.ts";
import { triesClusterGuarantees } from "./guarantees.ts";

triesClusterGuarantees("nats", natsCluster);
