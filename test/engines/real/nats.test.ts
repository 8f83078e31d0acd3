/**
 * NATS as Debian packages it, one server and three: what is guaranteed, while they are killed, paused and started again.
 * @module-tag long
 */

import { triesClusterGuarantees, triesGuarantees } from "./guarantees.ts";
import { natsCluster } from "./nats-cluster.ts";

triesGuarantees("nats");
triesClusterGuarantees("nats", natsCluster, 40_000);
