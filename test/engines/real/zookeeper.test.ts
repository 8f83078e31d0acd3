/**
 * ZooKeeper as Debian packages it, one server and three: what is guaranteed, while they are killed, paused and started again.
 * @module-tag long
 */
import { triesClusterGuarantees, triesGuarantees } from "./guarantees.ts";
import { zookeeperCluster } from "./zookeeper-cluster.ts";

triesGuarantees("zookeeper");
triesClusterGuarantees("zookeeper", zookeeperCluster, 20_000);
