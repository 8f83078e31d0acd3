/**
 * Measures nanoseconds per message for encoding, and for decoding and validating, with the codec, with JSON alone, and
 * with JSON plus the required validation of shapes.
 *
 *     npx coterie bench wire [--rounds 15 --messages 20000]
 */
import { Bench } from "tinybench";
import { list, natural, nullable, oneOf, problem, real, struct, text, variants } from "../src/core/shape.ts";
import { codecOf, Reader, Writer } from "../src/runtime/wire.ts";
import { commandLine } from "./command-line.ts";
import { inTurns, OURS, printRows, Rows } from "./results.ts";

const { values, whole } = commandLine("wire", {
  rounds: { such: "<n>", default: "15", help: "measurements of each (default: 15)" },
  messages: { such: "<n>", default: "20000", help: "messages in each measurement (default: 20000)" },
});
const rounds = whole("rounds", values.rounds, 1, 1_000);
const messages = whole("messages", values.messages, 1, 10_000_000);

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

/** Keeps the work from being optimized away. */
let sum = 0;

/** Measures nanoseconds per call. */
function timed(work: () => unknown): number {
  const bench = new Bench({ iterations: 1, time: 0, warmup: false, throws: true }).add("work", () => {
    for (let i = 0; i < messages; i++) if (work() !== undefined) sum += 1;
  });
  const [task] = bench.runSync();
  if (task === undefined || !("latency" in task.result)) throw new Error("expected a figure");
  return (task.result.latency.p50 * 1e6) / messages;
}

for (const [name, message] of Object.entries(samples)) {
  const into = new Writer();
  codec.write(message, into);
  const bytes = into.bytes();
  const json = Buffer.from(JSON.stringify(message));
  const reader = new Reader(bytes);
  const parsed = (): unknown => JSON.parse(json.toString("utf8"));
  const systems: Readonly<Record<string, () => unknown>> = {
    [`encode: ${OURS}`]: () => {
      into.position = 0;
      codec.write(message, into);
      return into.position;
    },
    // Write into a buffer, as the codec does, because a socket takes bytes.
    "encode: JSON": () => into.buffer.write(JSON.stringify(message), 0, "utf8"),
    [`decode: ${OURS}`]: () => {
      reader.position = 0;
      return codec.read(reader);
    },
    "decode: JSON": parsed,
    "decode: JSON, then checked": () => {
      const value = parsed();
      return problem(shape, value, "message") ?? value;
    },
  };
  const rows = new Rows(name);
  const measurements = Object.entries(systems).map(([what, work]) => [what, () => timed(work)] as const);
  const found = await inTurns<string, number>(rounds, Object.fromEntries(measurements), { warmUps: 2 });
  for (const [what, figures] of Object.entries(found)) {
    const [direction = "", system = ""] = what.split(": ");
    for (const figure of figures) rows.add(direction, "ns", figure, system);
  }
  printRows(`${name}: ${bytes.length} bytes, as JSON ${json.length}`, rows.all);
}
if (sum === 0) throw new Error("nothing was measured");
