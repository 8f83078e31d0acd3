/** A user's program, compiled against the installed package: every subpath, and the types that cross them. */
import { type EngineMember, type Grant, guard, join, type Member } from "coterie";
import { type Client, connect } from "coterie/client";
import { assemble, type NodeId, type Protocol, UsageError, type Vocabulary } from "coterie/core";
import { etcd } from "coterie/engines/etcd";
import { nats } from "coterie/engines/nats";
import { postgres } from "coterie/engines/postgres";
import { redis } from "coterie/engines/redis";
import { zookeeper } from "coterie/engines/zookeeper";
import { runScenario, scenarioSchema } from "coterie/experiment";
import { type CoterieFastifyOptions, coterie } from "coterie/fastify";
import { type Coordination, CoterieModule } from "coterie/nestjs";
import { type Bully, bully, heartbeat, protocolNames } from "coterie/protocols";
import { type HostedNode, host } from "coterie/runtime";
import { type Simulation, simulation } from "coterie/sim";
import { seeds, simulate, type World } from "coterie/testing";

export const hosted = (id: NodeId): Promise<HostedNode<Bully>> =>
  host<Bully>(bully(), {
    id,
    members: { 0: "127.0.0.1:7401", 1: "127.0.0.1:7402" },
    onEvent: (event) => console.log(event.type),
  });

export const plugin: [unknown, CoterieFastifyOptions] = [
  coterie,
  { join: { id: 1, members: { 1: "127.0.0.1:7404" }, dataDir: "." } },
];
export const module = CoterieModule.forRoot({ id: 1, members: { 1: "127.0.0.1:7405" }, dataDir: "." });
export const scheduled = (service: Coordination): Promise<void> =>
  service.lead("scheduler", ({ token }) => guard()(token));
export const atEngine = (url: string): Promise<EngineMember> => join({ engine: postgres({ url }) });
export const atRedis = (url: string): Promise<EngineMember> => join({ engine: redis({ url, prefix: "demo" }) });
export const atEtcd = (endpoint: string): Promise<EngineMember> => join({ engine: etcd({ endpoints: [endpoint] }) });
export const atNats = (server: string): Promise<EngineMember> => join({ engine: nats({ servers: [server] }) });
export const atZookeeper = (server: string): Promise<EngineMember> =>
  join({ engine: zookeeper({ servers: [server] }) });
export const joined = (id: NodeId): Promise<Member> => join({ id, members: { 1: "127.0.0.1:7403" }, dataDir: "." });
export async function services(member: Member): Promise<void> {
  const lock: AsyncDisposable & Grant = await member.mutex("invoice-42").acquire({ signal: member.signal });
  guard()(lock.token);
  await lock.release();
  await member.election("report").lead(({ token }) => guard()(token));
  for await (const { leader, token } of member.election("report").watch()) guard()(token ?? leader ?? 0);
}

export async function client(endpoints: readonly string[]): Promise<number | undefined> {
  const client: Client = await connect({ endpoints });
  return client.map<number>("stock").get("apples");
}

const pair: Protocol<Vocabulary> = assemble(
  "pair",
  { detector: heartbeat(), election: bully() },
  { detector: { suspected: ({ node }, give) => give("election", { type: "suspect", node }) } },
  { face: "election" },
) as never;

const sim: Simulation<Bully> = simulation({ protocol: bully(), nodes: [1, 2, 3], seed: 1, delayMs: 5 });
sim.start(1);
export const leader: NodeId | null = sim.world.state(1).leader;
// @ts-expect-error a state holds what its type bag says, and nothing else
export const stranger = sim.world.state(1).follower;

export const outcome: object = runScenario(
  scenarioSchema.parse({
    name: "highest crashed",
    protocol: "bully",
    nodes: 3,
    begin: { down: [2] },
    steps: [{ call: 0 }],
  }),
).outcome;

const world: World = simulate({ members: 3, seed: seeds(1)[0] });
await world.run(async () => {
  const lock: Grant = await world.member(1).mutex("invoice-42").acquire();
  world.partition([1], [2, 3]);
  guard()(lock.token);
});

export const facts = [pair.name, ...protocolNames, new UsageError("code", "message").code];
