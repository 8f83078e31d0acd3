/**
 * Nanoseconds per message to encode, and to decode and validate: the codec, JSON alone, and JSON with the check of the shape that
 * has to follow it; and how much of decoding is spent on checks.
 *
 *     npx coterie bench wire [--rounds 15 --messages 20000]
 */
import { Bench } from "tinybench";
import { list, natural, nullable, oneOf, problem, real, struct, text, variants } from "../src/core/shape.ts";
import { codecOf, Reader, Writer } from "../src/runtime/wire.ts";
import { commandLine } from "./command-line.ts";
import { type Place, trustingDecoder } from "./trusting-decoder.ts";

const { values } = commandLine("wire", {
  rounds: { such: "<n>", default: "15", help: "measurements of each (default: 15)" },
  messages: { such: "<n>", default: "20000", help: "messages in each measurement (default: 20000)" },
});
const rounds = Number(values.rounds);
const messages = Number(values.messages);

interface Entry {
  term: number;
  command: string;
  client: number | null;
}
type Message =
  | { type: "election" }
  | { type: "ping"; count: number; payload: string }
  | { type: "append"; term: number; role: "leader" | "follower"; load: number; entries: Entry[] };

const entry = struct<Entry>({ term: natural, command: text(1_024), client: nullable(natural) });
const shape = variants<Message>({
  election: {},
  ping: { count: natural, payload: text(1_024) },
  append: { term: natural, role: oneOf("leader", "follower"), load: real, entries: list(entry, 1_000) },
});
const samples: Readonly<Record<string, Message>> = {
  "a bare election": { type: "election" },
  "a ping of 48 bytes": { type: "ping", count: 1_234_567, payload: "x".repeat(48) },
  "an append of 10 entries": {
    type: "append",
    term: 300,
    role: "leader",
    load: 0.75,
    entries: Array.from({ length: 10 }, (_, i) => ({
      term: 290 + i,
      command: `set key-${i} välue`,
      client: i % 2 ? i : null,
    })),
  },
};

const codec = codecOf<Message>(shape);
const trusting = trustingDecoder(shape);

/** What keeps the work from being optimised away. */
let sum = 0;

/** The contestants for one message; each does its work `messages` times. */
function contestants(message: Message): Record<string, () => void> {
  const into = new Writer();
  codec.write(message, into);
  const bytes = into.bytes();
  const json = Buffer.from(JSON.stringify(message));
  const reader = new Reader(bytes);
  const place: Place = { buffer: bytes, position: 0 };
  const times = (work: () => unknown) => (): void => {
    for (let i = 0; i < messages; i++) if (work() !== undefined) sum += 1;
  };
  return {
    "encode  codec": times(() => {
      into.position = 0;
      codec.write(message, into);
      return into.position;
    }),
    // Into a buffer of its own, as the codec does: a socket takes bytes.
    "encode  JSON": times(() => into.buffer.write(JSON.stringify(message), 0, "utf8")),
    "decode  codec": times(() => {
      reader.position = 0;
      return codec.read(reader);
    }),
    "decode  codec without its checks": times(() => {
      place.position = 0;
      return trusting(place);
    }),
    "decode  JSON": times(() => JSON.parse(json.toString("utf8"))),
    "decode  JSON, then problem()": times(() => {
      const value: unknown = JSON.parse(json.toString("utf8"));
      return problem(shape, value, "message") ?? value;
    }),
  };
}

console.log(`nanoseconds per message, median [min–max] of ${rounds} rounds of ${messages} messages`);
for (const [name, message] of Object.entries(samples)) {
  const into = new Writer();
  codec.write(message, into);
  console.log(`\n${name}: ${into.position} bytes, as JSON ${Buffer.byteLength(JSON.stringify(message))}`);
  const bench = new Bench({ iterations: rounds, time: 0, warmupIterations: 2, warmupTime: 0, throws: true });
  for (const [what, run] of Object.entries(contestants(message))) bench.add(what, run);
  const medians = new Map<string, number>();
  for (const { name: what, result } of bench.runSync()) {
    if (!("latency" in result)) throw new Error(`expected figures of ${what}`);
    const [median, min, max] = [result.latency.p50, result.latency.min, result.latency.max].map(
      (ms) => (ms * 1e6) / messages,
    ) as [number, number, number];
    medians.set(what, median);
    console.log(`  ${what.padEnd(34)} ${median.toFixed(0).padStart(6)} [${min.toFixed(0)}–${max.toFixed(0)}]`);
  }
  const of = (what: string): number => medians.get(what) as number;
  const share = 100 * (1 - of("decode  codec without its checks") / of("decode  codec"));
  console.log(`  ${"share of the checks in decoding".padEnd(34)} ${share.toFixed(0).padStart(6)} %`);
}
if (sum === 0) throw new Error("nothing was measured");
