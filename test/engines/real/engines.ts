/** The engines that are tested with real servers, each packaged by Debian. */
import { etcd } from "../../../src/engines/etcd.ts";
import { nats } from "../../../src/engines/nats.ts";
import { postgres } from "../../../src/engines/postgres.ts";
import { redis } from "../../../src/engines/redis.ts";
import { zookeeper } from "../../../src/engines/zookeeper.ts";
import type { ExternalEngine } from "../../../src/index.ts";
import { CLUSTER_SIZE } from "./cluster.ts";
import { etcdServer, natsServer, postgresServer, redisServer, type ServerKind, zookeeperServer } from "./servers.ts";

export interface RealEngine {
  readonly name: string;
  /** The title of its page in docs/guide/engines. */
  readonly title: string;
  readonly server: ServerKind;
  engine(ports: readonly number[]): ExternalEngine;
}

const replicasOf = (ports: readonly number[]): number => (ports.length === CLUSTER_SIZE ? CLUSTER_SIZE : 1);

export const realEngines: readonly RealEngine[] = [
  {
    name: "postgres",
    title: "PostgreSQL",
    server: postgresServer,
    engine: ([port]) => postgres({ url: `postgres://coterie@127.0.0.1:${port}/postgres` }),
  },
  {
    name: "redis",
    title: "Redis",
    server: redisServer,
    engine: ([port]) => redis({ url: `redis://127.0.0.1:${port}` }),
  },
  {
    name: "etcd",
    title: "etcd",
    server: etcdServer,
    engine: (ports) => etcd({ endpoints: ports.map((port) => `http://127.0.0.1:${port}`) }),
  },
  {
    name: "nats",
    title: "NATS",
    server: natsServer,
    engine: (ports) => nats({ servers: ports.map((port) => `nats://127.0.0.1:${port}`), replicas: replicasOf(ports) }),
  },
  {
    name: "zookeeper",
    title: "ZooKeeper",
    server: zookeeperServer,
    engine: (ports) => zookeeper({ servers: ports.map((port) => `127.0.0.1:${port}`) }),
  },
];
