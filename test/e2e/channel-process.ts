/**
 * A process for members with channels, one after the other: takes orders as JSON lines and says as JSON lines what comes of
 * them. Its argument is the built package.
 */
import { createInterface } from "node:readline";
import type { JoinOptions, Member } from "../../src/cluster/services/api.ts";
import type { Channel, ChannelOptions, ChannelView } from "../../src/cluster/services/channel-api.ts";

export type Order =
  | { do: "join"; options: JoinOptions }
  /** Opens a channel, reads it, and says all that comes. */
  | { do: "open"; name: string; options: ChannelOptions }
  /** Sends so many payloads, `PREFIX 1` and up, and says how many were settled, and otherwise. */
  | { do: "send"; name: string; prefix: string; count: number }
  | { do: "leave" };

export type Report =
  | { said: "joined" }
  | { said: "left" }
  | ({ said: "view"; name: string } & ChannelView)
  | { said: "delivered"; name: string; from: number; payload: string; id: string; view: number }
  | { said: "sent"; name: string; prefix: string; ids: string[]; refused: { code: string; phase: string }[] };

const [packageUrl = ""] = process.argv.slice(2);
const { createLog, join }: typeof import("../../src/index.ts") = await import(packageUrl);
const channels = new Map<string, Channel<string>>();
const report = (what: Report): void => void process.stdout.write(`${JSON.stringify(what)}\n`);
/** That members are cut off is what these tests are about. */
const log = createLog((level, text) => void (level === "error" && process.stderr.write(`${text}\n`)));
let member: Member | null = null;

function open(name: string, given: ChannelOptions): void {
  const channel = (member as Member).channel<string>(name, given);
  channels.set(name, channel);
  void (async () => {
    for await (const message of channel) report({ said: "delivered", name, ...message });
  })();
  void (async () => {
    for await (const view of channel.views()) report({ said: "view", name, ...view });
  })();
}

async function send({ name, prefix, count }: Extract<Order, { do: "send" }>): Promise<void> {
  const channel = channels.get(name) as Channel<string>;
  const sends = Array.from({ length: count }, (_, index) => channel.send(`${prefix} ${index + 1}`));
  const results = await Promise.allSettled(sends);
  const ids = results.flatMap((result) => (result.status === "fulfilled" ? [result.value.id] : []));
  const refused = results.flatMap((result) =>
    result.status === "rejected" ? [{ code: result.reason.code, phase: result.reason.phase }] : [],
  );
  report({ said: "sent", name, prefix, ids, refused });
}

async function carryOut(order: Order): Promise<void> {
  if (order.do === "open") return open(order.name, order.options);
  if (order.do === "send") return send(order);
  if (order.do === "join") {
    member = await join({ ...order.options, log });
    return report({ said: "joined" });
  }
  await member?.leave();
  report({ said: "left" });
}

const orders = createInterface({ input: process.stdin });
// A test that is broken off leaves no members behind.
orders.on("close", () => void member?.leave());
orders.on("line", (line) => {
  carryOut(JSON.parse(line) as Order).catch((error: unknown) => {
    process.stderr.write(`${(error as Error).stack}\n`);
    process.exit(1);
  });
});
