/**
 * Three servers of etcd: its guarantees while the leader is killed and paused, and the network splits.
 * @module-tag long
 */
import { etcdCluster } from "./cluster.ts";
import { triesClusterGuarantees } from "./guarantees.ts";

triesClusterGuarantees("etcd", etcdCluster);
