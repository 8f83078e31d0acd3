/** `coterie counter NAME`: reads a counter, adds to it, or sets it. */
import type { Command } from "commander";
import { UsageError, unexpected } from "../core/errors.ts";
import { asClient, CODES, type DataOptions, withDataOptions } from "./endpoints.ts";
import type { Invocation } from "./invocation.ts";

interface CounterOptions extends DataOptions {
  readonly add?: number;
  readonly set?: number;
}

export function declare(command: Command, invocation: Invocation): void {
  command.description("Prints a counter, after adding to it or setting it if so asked.").argument("<name>", "its name");
  withDataOptions(command)
    .option("--add <n>", "add this, below 0 to count down", whole("--add"))
    .option("--set <n>", "set it to this", whole("--set"))
    .addHelpText("after", EXPLANATION)
    .action((name: string, options: CounterOptions) => counter(name, options, invocation));
}

const EXPLANATION = `
Example:
  $ coterie counter orders --add 1 --endpoints http://127.0.0.1:7300
  42

With --json: { "value" }.
${CODES}`;

function whole(option: string) {
  return (text: string): number => {
    const number = /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
    if (Number.isSafeInteger(number)) return number;
    throw new UsageError("bad-argument", unexpected(option, "a whole number", text));
  };
}

async function counter(name: string, options: CounterOptions, invocation: Invocation): Promise<void> {
  const { add, set } = options;
  if (add !== undefined && set !== undefined) throw new UsageError("bad-argument", "expected --add or --set, got both");
  await asClient(options, invocation, async (client, call) => {
    const it = client.counter(name);
    if (set !== undefined) await it.set(set, call);
    const value = set ?? (add === undefined ? await it.get(call) : await it.add(add, call));
    return { json: { value }, text: String(value) };
  });
}
