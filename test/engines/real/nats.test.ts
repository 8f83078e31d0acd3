/**
 * NATS as Debian packages it, one server and three: what is promised, while they are killed, paused and started again.
 * @module-tag long
 */
import { natsCluster } from "./nats-cluster.ts";
import { triesClusterPromises, triesPromises } from "./promises.ts";

triesPromises("nats");
triesClusterPromises("nats", natsCluster, 40_000);
