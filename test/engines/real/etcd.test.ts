/**
 * etcd as Debian packages it, one server and three: what is promised, while they are killed, paused and started again.
 * @module-tag long
 */
import { etcdCluster } from "./etcd-cluster.ts";
import { triesClusterPromises, triesPromises } from "./promises.ts";

triesPromises("etcd");
triesClusterPromises("etcd", etcdCluster, 20_000);
