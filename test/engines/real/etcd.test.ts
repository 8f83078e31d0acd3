/**
 * etcd as Debian packages it, one server and three: what is guaranteed, while they are killed, paused and started again.
 * @module-tag long
 */
import { etcdCluster } from "./etcd-cluster.ts";
import { triesClusterGuarantees, triesGuarantees } from "./guarantees.ts";

triesGuarantees("etcd");
triesClusterGuarantees("etcd", etcdCluster, 20_000);
