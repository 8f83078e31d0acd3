/** Three servers of ZooKeeper. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { answerOf } from "../../../bench/cluster/zookeeper.ts";
import { freePorts } from "../../network/free-ports.ts";
import { CLUSTER_SIZE, EngineCluster } from "./cluster.ts";
import { EngineServer, zookeeperArgs, zookeeperServer } from "./servers.ts";

export async function zookeeperCluster(): Promise<EngineCluster> {
  const places: { readonly client: number; readonly peer: number; readonly election: number }[] = [];
  for (let at = 0; at < CLUSTER_SIZE; at++) {
    const [client, peer, election] = (await freePorts(3)) as [number, number, number];
    places.push({ client, peer, election });
  }
  const all = places.map(
    ({ client, peer, election }, at) => `server.${at + 1}=127.0.0.1:${peer}:${election};127.0.0.1:${client}`,
  );
  const servers = places.map(({ client }, at) => {
    const prepare = (_program: string, folder: string): void => {
      mkdirSync(join(folder, "data"));
      writeFileSync(join(folder, "data", "myid"), String(at + 1));
    };
    const args = (folder: string): string[] =>
      zookeeperArgs(folder, [
        `dataDir=${join(folder, "data")}`,
        ...["initLimit=10", "syncLimit=5", "4lw.commands.whitelist=srvr"],
        ...all,
      ]);
    return EngineServer.start({ ...zookeeperServer, prepare, args }, client);
  });
  return new EngineCluster(await Promise.all(servers), leads);
}

const leads = async (port: number): Promise<boolean> => /^Mode: leader$/m.test(await answerOf(port, "srvr"));
