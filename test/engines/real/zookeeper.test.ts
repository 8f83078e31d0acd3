/**
 * ZooKeeper as Debian packages it, one server and three: what is promised, while they are killed, paused and started again.
 * @module-tag long
 */
import { triesClusterPromises, triesPromises } from "./promises.ts";
import { zookeeperCluster } from "./zookeeper-cluster.ts";

triesPromises("zookeeper");
triesClusterPromises("zookeeper", zookeeperCluster, 20_000);
