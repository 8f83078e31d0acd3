/** Three servers of etcd. */
import { join } from "node:path";
import { freePorts } from "../../network/free-ports.ts";
import { CLUSTER_SIZE, EngineCluster } from "./cluster.ts";
import { EngineServer, etcdServer } from "./servers.ts";

export async function etcdCluster(): Promise<EngineCluster> {
  const places: { readonly client: number; readonly peer: number }[] = [];
  for (let at = 0; at < CLUSTER_SIZE; at++) {
    const [client, peer] = (await freePorts(2)) as [number, number];
    places.push({ client, peer });
  }
  const all = places.map(({ peer }, at) => `node${at}=http://127.0.0.1:${peer}`).join(",");
  const servers = places.map(({ client, peer }, at) => {
    const [clients, peers] = [`http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`];
    const args = (folder: string): string[] => [
      ...["--name", `node${at}`, "--data-dir", join(folder, "data")],
      ...["--listen-client-urls", clients, "--advertise-client-urls", clients],
      ...["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", all],
    ];
    return EngineServer.start({ ...etcdServer, args }, client);
  });
  return new EngineCluster(await Promise.all(servers), leads);
}

async function leads(port: number): Promise<boolean> {
  const place = `http://127.0.0.1:${port}/v3/maintenance/status`;
  const asked = { method: "POST", body: "{}", signal: AbortSignal.timeout(1_000) };
  const answer = await fetch(place, asked).then(
    (response) => response.json() as Promise<{ leader?: string; header?: { member_id?: string } }>,
    () => null, // It is away.
  );
  return answer?.leader !== undefined && answer.leader === answer.header?.member_id;
}
