/**
 * A process that runs members with channels, one after another. It takes orders and reports results as JSON lines. Its
 * argument is the built package.
 */
import { createInterface } from "node:readline";
import type { JoinOptions, Member } from "../../src/cluster/services/api.ts";
import type {
  Channel,
  ChannelMessage,
  ChannelOptions,
  ChannelView,
  Sent,
} from "../../src/cluster/services/channel-api.ts";

export type Order =
  | { do: "join"; options: JoinOptions }
  /** Opens a channel, reads it, and reports everything it delivers. */
  | { do: "open"; name: string; options: ChannelOptions }
  /** Sends this many payloads, `PREFIX 1`, `PREFIX 2` and so on, and reports how each was settled. */
  | { do: "send"; name: string; prefix: string; count: number }
  | { do: "leave" };

export type Report =
  | { kind: "joined" }
  | { kind: "left" }
  /** `turn` increases once all available input has been read. Within a turn, views and messages are unordered. */
  | ({ kind: "view"; name: string; turn: number } & ChannelView)
  | ({ kind: "delivered"; name: string; turn: number } & ChannelMessage<string>)
  | { kind: "sent"; name: string; prefix: string; settled: Settled[]; refused: Refused[] };

type Settled = Sent & { payload: string };
interface Refused {
  payload: string;
  code: string;
  phase: string;
}

const [packageUrl = ""] = process.argv.slice(2);
const { createLog, join }: typeof import("../../src/index.ts") = await import(packageUrl);
const channels = new Map<string, Channel<string>>();
const report = (what: Report): void => void process.stdout.write(`${JSON.stringify(what)}\n`);
/** Tests cut members off, so only errors matter. */
const log = createLog((level, text) => void (level === "error" && process.stderr.write(`${text}\n`)));
let member: Member | null = null;

let turn = 0;
let isTurning = false;

/** Returns the current turn. A turn ends when the microtask queue is empty, so all readers have read by then. */
function thisTurn(): number {
  if (!isTurning)
    process.nextTick(() => {
      turn += 1;
      isTurning = false;
    });
  isTurning = true;
  return turn;
}

function open(name: string, given: ChannelOptions): void {
  const channel = (member as Member).channel<string>(name, given);
  channels.set(name, channel);
  void (async () => {
    for await (const message of channel) report({ kind: "delivered", name, turn: thisTurn(), ...message });
  })();
  void (async () => {
    for await (const view of channel.views()) report({ kind: "view", name, turn: thisTurn(), ...view });
  })();
}

async function send({ name, prefix, count }: Extract<Order, { do: "send" }>): Promise<void> {
  const channel = channels.get(name) as Channel<string>;
  const settled: Settled[] = [];
  const refused: Refused[] = [];
  const sends = Array.from({ length: count }, async (_, index) => {
    const payload = `${prefix} ${index + 1}`;
    try {
      settled.push({ ...(await channel.send(payload)), payload });
    } catch (error) {
      const { code, phase } = error as { code: string; phase: string };
      refused.push({ payload, code, phase });
    }
  });
  await Promise.all(sends);
  report({ kind: "sent", name, prefix, settled, refused });
}

async function carryOut(order: Order): Promise<void> {
  if (order.do === "open") return open(order.name, order.options);
  if (order.do === "send") return send(order);
  if (order.do === "join") {
    member = await join({ ...order.options, log });
    return report({ kind: "joined" });
  }
  await member?.leave();
  report({ kind: "left" });
}

const orders = createInterface({ input: process.stdin });
// An interrupted test must not leave members running.
orders.on("close", () => void member?.leave());
orders.on("line", (line) => {
  carryOut(JSON.parse(line) as Order).catch((error: unknown) => {
    process.stderr.write(`${(error as Error).stack}\n`);
    process.exit(1);
  });
});
