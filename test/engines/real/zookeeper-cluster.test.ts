/**
 * Three servers of ZooKeeper: its guarantees while the leader is killed and paused, and the network splits.
 * @module-tag long
 */

import { zookeeperCluster } from "./cluster.ts";
import { triesClusterGuarantees } from "./guarantees.ts";

triesClusterGuarantees("zookeeper", zookeeperCluster);
