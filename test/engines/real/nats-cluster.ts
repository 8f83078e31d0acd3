/** Three servers of NATS, which keep the stream on all of them. */
import { freePorts } from "../../network/free-ports.ts";
import { CLUSTER_SIZE, EngineCluster } from "./cluster.ts";
import { EngineServer, natsServer } from "./servers.ts";

/** By the port of its clients: its monitoring. */
type Places = ReadonlyMap<number, { readonly name: string; readonly monitoring: number }>;

export async function natsCluster(): Promise<EngineCluster> {
  const places: { readonly client: number; readonly peer: number; readonly monitoring: number }[] = [];
  for (let at = 0; at < CLUSTER_SIZE; at++) {
    const [client, peer, monitoring] = (await freePorts(3)) as [number, number, number];
    places.push({ client, peer, monitoring });
  }
  const routes = places.map(({ peer }) => `nats://127.0.0.1:${peer}`).join(",");
  const servers = places.map(({ client, peer, monitoring }, at) => {
    const args = (folder: string, port: number): string[] => [
      ...natsServer.args(folder, port),
      ...["--server_name", nameOf(at), "--http_port", String(monitoring)],
      // Clients are told of no others: what is between a process and the servers is not to be gone around.
      ...["--cluster_name", "engines", "--cluster", `nats://127.0.0.1:${peer}`, "--routes", routes, "--no_advertise"],
    ];
    return EngineServer.start({ ...natsServer, args }, client);
  });
  const byPort: Places = new Map(
    places.map(({ client, monitoring }, at) => [client, { name: nameOf(at), monitoring }] as const),
  );
  return new EngineCluster(await Promise.all(servers), (port) => leads(byPort, port));
}

const nameOf = (at: number): string => `server${at}`;

interface JetStreamAnswer {
  readonly account_details?: readonly {
    readonly stream_detail?: readonly { readonly cluster?: { readonly leader?: string } }[];
  }[];
}

const asked = (monitoring: number, path: string): Promise<Response | null> =>
  fetch(`http://127.0.0.1:${monitoring}${path}`, { signal: AbortSignal.timeout(1_000) }).catch(() => null); // It is away.

/** The one stream that there is; with servers that have all caught up, as one that has not may be long in following another. */
async function leads(places: Places, port: number): Promise<boolean> {
  const { name, monitoring } = places.get(port) ?? { name: "", monitoring: 0 };
  const answer = (await (await asked(monitoring, "/jsz?streams=true"))?.json()) as JetStreamAnswer | undefined;
  const all = await Promise.all([...places.values()].map((each) => asked(each.monitoring, "/healthz")));
  if (!all.every((each) => each?.ok === true)) return false;
  const streams = (answer?.account_details ?? []).flatMap(({ stream_detail = [] }) => stream_detail);
  return streams.some(({ cluster }) => cluster?.leader === name);
}
