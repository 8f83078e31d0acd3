/**
 * One member in a separate process, for `join.test.ts`. It takes orders and reports results as JSON lines. Its first
 * argument is the built package, and its second one the options of `join()`.
 */
import { appendFileSync, closeSync, openSync, unlinkSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import type { Tenure } from "../../src/index.ts";

export type Order =
  /**
   * Acquires the lock this many times, or until it is stopped. The witness is a file that only one process at a time
   * can create.
   */
  | { do: "contend"; entries: number | "many"; witness: string }
  | { do: "rest" }
  /** Acquires the lock, and writes the token into a file, line by line, until its signal aborts. */
  | { do: "write"; file: string }
  /** Acquires and releases the lock. */
  | { do: "enter" }
  /** Campaigns, and leads until it loses the leadership. */
  | { do: "lead" }
  /**
   * Contends for one lock and campaigns in one election forever. Writes its observations of tenures to a file, as
   * `Sighting`s.
   */
  | { do: "sight"; file: string; run: string }
  /** Puts `key 1`, `key 2` and so on into a map until it is stopped. Writes acknowledged keys to a file. */
  | { do: "put"; key: string; file: string }
  /** Reports all entries of that map. */
  | { do: "range" }
  /**
   * Sends the commands `KEY 1`, `KEY 2` and so on to its state machine until it is stopped. Writes a line `PLACE WORD`
   * for each acknowledged command.
   */
  | { do: "record"; key: string; file: string }
  /** Reports the state of that state machine. */
  | { do: "ledger" }
  /** Reports changes of the map after that revision. */
  | { do: "watch"; after: number }
  | { do: "status" }
  | { do: "leave" };

/** An observation of a process about its own grant or leadership. */
export interface Sighting {
  readonly of: "lock" | "election";
  /** The run of a member. A restarted member has a new run. */
  readonly run: string;
  /** The number of the tenure in this run. */
  readonly tenure: number;
  readonly token: number;
  /** Time on the machine's monotonic clock, in milliseconds. */
  readonly at: number;
  /** Whether the process held it at that time, according to its own signal or `isHeld`. */
  readonly certain: boolean;
}

export type Report =
  | { kind: "joined" }
  | { kind: "left" }
  | { kind: "put"; count: number }
  | { kind: "range"; keys: string[] }
  | { kind: "change"; key: string; revision: number }
  | { kind: "recorded" }
  | { kind: "ledger"; words: string[] }
  | {
      kind: "status";
      leader: number | null;
      hasQuorum: boolean;
      refusals: { node: number; reason: string; members: string }[];
    }
  | { kind: "contended"; tokens: number[] }
  | { kind: "writing"; token: number }
  | { kind: "entered"; token: number }
  | { kind: "leading"; token: number }
  | { kind: "lost"; token: number; code: string; heldAfter: boolean };

const [packageUrl = "", options = "{}"] = process.argv.slice(2);
const { join }: typeof import("../../src/index.ts") = await import(packageUrl);
const member = await join(JSON.parse(options));
const report = (what: Report): void => void process.stdout.write(`${JSON.stringify(what)}\n`);

let isResting = false;

async function contend({ entries, witness }: Extract<Order, { do: "contend" }>): Promise<void> {
  const tokens: number[] = [];
  isResting = false;
  for (let entry = 0; !isResting && (entries === "many" || entry < entries); entry++) {
    await member.mutex("contended").use(async ({ token }) => {
      closeSync(openSync(witness, "wx")); // Fails while a different process holds the lock.
      tokens.push(token);
      appendFileSync(`${witness}.log`, `${token}\n`);
      await sleep(1);
      unlinkSync(witness);
    });
  }
  report({ kind: "contended", tokens });
}

async function write(file: string): Promise<void> {
  const grant = await member.mutex("written").acquire();
  report({ kind: "writing", token: grant.token });
  while (!grant.signal.aborted) {
    appendFileSync(file, `${grant.token}\n`);
    await sleep(2);
  }
  report({ kind: "lost", token: grant.token, code: grant.signal.reason.code, heldAfter: grant.isHeld });
}

const numbersOf = () => member.map<number>("numbers");

async function put({ key, file }: Extract<Order, { do: "put" }>): Promise<void> {
  let count = 0;
  isResting = false;
  while (!isResting) {
    await numbersOf().put(`${key} ${count + 1}`, count + 1, { timeoutMs: 60_000 });
    count += 1;
    appendFileSync(file, `${key} ${count}\n`);
  }
  report({ kind: "put", count });
}

/** All commands, in order. A command that was applied twice occurs twice. */
const ledger = {
  init: (): string[] => [],
  apply: (words: string[], word: string): [string[], number] => [[...words, word], words.length + 1],
};
const ledgerOf = () => member.replicated("ledger", ledger);

async function record({ key, file }: Extract<Order, { do: "record" }>): Promise<void> {
  isResting = false;
  for (let count = 1; !isResting; count++) {
    const word = `${key} ${count}`;
    try {
      appendFileSync(file, `${await ledgerOf().execute(word, { timeoutMs: 60_000 })} ${word}\n`);
    } catch (error) {
      if ((error as { phase?: string }).phase === undefined) throw error; // Only errors with a phase are expected.
    }
  }
  await ledgerOf().read(); // After this read, earlier commands have been applied or never will be.
  report({ kind: "recorded" });
}

async function range(): Promise<void> {
  const keys: string[] = [];
  for (;;) {
    const last = keys.at(-1);
    const { entries, more } = await numbersOf().range(last === undefined ? {} : { from: `${last}\0` });
    keys.push(...entries.map((entry) => entry.key));
    if (!more) return report({ kind: "range", keys });
  }
}

async function watch(after: number): Promise<void> {
  for await (const { key, revision } of numbersOf().watch({ after })) report({ kind: "change", key, revision });
}

/** Enters, and retries if the process lost the lock because it was paused at that moment. */
async function enter(): Promise<void> {
  for (;;) {
    try {
      const { token } = await member.mutex("written").use((grant) => grant);
      return report({ kind: "entered", token });
    } catch (error) {
      if ((error as { code?: string }).code !== "grant-lost") throw error;
    }
  }
}

async function lead(): Promise<void> {
  await member.election("led").lead(async ({ token, signal, isHeld }) => {
    report({ kind: "leading", token });
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    report({ kind: "lost", token, code: signal.reason.code, heldAfter: isHeld && !signal.aborted });
  });
}

async function sight({ file, run }: Extract<Order, { do: "sight" }>): Promise<void> {
  const into = openSync(file, "a");
  let tenures = 0;
  /**
   * Checks a tenure and reports whether it is certain. The time is read first, so a tenure that is certain afterwards
   * was also certain at that time.
   */
  const observed: Observed = (of, held) => {
    const tenure = ++tenures;
    return () => {
      const at = Number(process.hrtime.bigint()) / 1e6;
      const certain = held.isHeld || !held.signal.aborted;
      const sighting: Sighting = { of, run, tenure, token: held.token, at, certain };
      writeSync(into, `${JSON.stringify(sighting)}\n`);
      return certain;
    };
  };
  await Promise.all([leadSeen(observed), holdSeen(observed)]);
}

type Observed = (of: Sighting["of"], held: Tenure) => () => boolean;

async function leadSeen(observed: Observed): Promise<void> {
  await member.election("seen").lead(async (leadership) => {
    const look = observed("election", leadership);
    while (look()) await sleep(10);
    await sleep(5);
    look(); // A lost tenure stays lost.
  });
}

async function holdSeen(observed: Observed): Promise<void> {
  for (let turn = 0; ; turn++) {
    try {
      const patience = turn % 3 === 0 ? { timeoutMs: 300 } : {}; // Some waits time out and must leave nothing behind.
      const grant = await member.mutex("seen").acquire(patience);
      const look = observed("lock", grant);
      for (let looks = 0; looks < 4 && look(); looks++) await sleep(4);
      await grant.release();
      await sleep(5);
    } catch (error) {
      const { code } = error as { code?: string };
      if (code !== "acquire-timeout" && code !== "grant-lost") throw error;
    }
  }
}

async function carryOut(order: Order): Promise<void> {
  if (order.do === "contend") return contend(order);
  if (order.do === "rest") {
    isResting = true;
    return;
  }
  if (order.do === "write") return write(order.file);
  if (order.do === "put") return put(order);
  if (order.do === "range") return range();
  if (order.do === "record") return record(order);
  if (order.do === "ledger") return report({ kind: "ledger", words: await ledgerOf().read() });
  if (order.do === "watch") return watch(order.after);
  if (order.do === "lead") return lead();
  if (order.do === "sight") return sight(order);
  if (order.do === "enter") return enter();
  if (order.do === "status") {
    const { hasQuorum, refusals, leader } = member.status();
    return report({ kind: "status", leader, hasQuorum, refusals: [...refusals] });
  }
  await member.leave();
  report({ kind: "left" });
  orders.close();
}

const orders = createInterface({ input: process.stdin });
orders.on("line", (line) => {
  carryOut(JSON.parse(line) as Order).catch((error: unknown) => {
    const { code, stack } = error as Error & { code?: string };
    if (code === "member-left") return;
    process.stderr.write(`${stack}\n`);
    process.exit(1);
  });
});
report({ kind: "joined" });
