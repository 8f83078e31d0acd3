/**
 * Three servers of ZooKeeper: its guarantees while the leader is killed and paused, and the network splits.
 * @module-tag long
 */

import { triesClusterGuarantees } from "./guarantees.ts";
import { zookeeperCluster } from "./zookeeper-cluster.ts";

triesClusterGuarantees("zookeeper", zookeeperCluster, 20_000);
