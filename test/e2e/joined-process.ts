/**
 * One member in a process of its own, for `join.test.ts`: takes orders as JSON lines and says as JSON lines what comes of
 * them. Its first argument is the built package, its second the options of `join()`.
 */
import { appendFileSync, closeSync, openSync, unlinkSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

export type Order =
  /** Enters so many times, or until it is to rest; a file that only one can make at a time is the witness. */
  | { do: "contend"; algorithm: string; entries: number | "many"; witness: string }
  | { do: "rest" }
  /** Acquires, and writes its token into a file, line by line, for as long as its signal lets it. */
  | { do: "write"; file: string }
  /** Acquires and releases. */
  | { do: "enter" }
  /** Campaigns, and leads until it is told that it does not any more. */
  | { do: "lead" }
  | { do: "status" }
  | { do: "leave" };

export type Report =
  | { said: "joined" }
  | { said: "left" }
  | { said: "status"; hasQuorum: boolean; refusals: { node: number; reason: string; members: string }[] }
  | { said: "contended"; tokens: number[] }
  | { said: "refused"; code: string; why: string }
  | { said: "writing"; token: number }
  | { said: "entered"; token: number }
  | { said: "leading"; token: number }
  | { said: "lost"; token: number; code: string; heldAfter: boolean };

const [packageUrl = "", options = "{}"] = process.argv.slice(2);
const { join }: typeof import("../../src/index.ts") = await import(packageUrl);
const member = await join(JSON.parse(options));
const report = (what: Report): void => void process.stdout.write(`${JSON.stringify(what)}\n`);

let isResting = false;

async function contend({ algorithm, entries, witness }: Extract<Order, { do: "contend" }>): Promise<void> {
  const tokens: number[] = [];
  isResting = false;
  for (let entry = 0; !isResting && (entries === "many" || entry < entries); entry++) {
    await member.mutex(`contended ${algorithm}`, { algorithm }).use(async ({ token }) => {
      closeSync(openSync(witness, "wx")); // Which fails while another is inside.
      tokens.push(token);
      appendFileSync(`${witness}.log`, `${token}\n`);
      await sleep(1);
      unlinkSync(witness);
    });
  }
  report({ said: "contended", tokens });
}

async function write(file: string): Promise<void> {
  const grant = await member.mutex("written").acquire();
  report({ said: "writing", token: grant.token });
  while (!grant.signal.aborted) {
    appendFileSync(file, `${grant.token}\n`);
    await sleep(2);
  }
  report({ said: "lost", token: grant.token, code: grant.signal.reason.code, heldAfter: grant.isHeld });
}

async function lead(): Promise<void> {
  await member.election("led").lead(async ({ token, signal, isHeld }) => {
    report({ said: "leading", token });
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    report({ said: "lost", token, code: signal.reason.code, heldAfter: isHeld && !signal.aborted });
  });
}

async function carryOut(order: Order): Promise<void> {
  if (order.do === "contend") return contend(order);
  if (order.do === "rest") {
    isResting = true;
    return;
  }
  if (order.do === "write") return write(order.file);
  if (order.do === "lead") return lead();
  if (order.do === "enter") {
    const { token } = await member.mutex("written").use((grant) => grant);
    return report({ said: "entered", token });
  }
  if (order.do === "status") {
    const { hasQuorum, refusals } = member.status();
    return report({ said: "status", hasQuorum, refusals: [...refusals] });
  }
  await member.leave();
  report({ said: "left" });
  orders.close();
}

const orders = createInterface({ input: process.stdin });
orders.on("line", (line) => {
  carryOut(JSON.parse(line) as Order).catch((error: unknown) => {
    const { code, stack } = error as Error & { code?: string };
    if (code === "member-left") return;
    if (code === "instance-refused" || code === "other-setting" || code === "other-release")
      return report({ said: "refused", code, why: (error as Error).message });
    process.stderr.write(`${stack}\n`);
    process.exit(1);
  });
});
report({ said: "joined" });
