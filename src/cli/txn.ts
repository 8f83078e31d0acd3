/** `coterie txn FILE`: several reads and writes at one moment, or none. */
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { serviceOf } from "../client/client.ts";
import { performed, readTransaction } from "../cluster/clients/transaction-request.ts";
import { UsageError } from "../core/errors.ts";
import { asClient, CODES, type DataOptions, shown, withDataOptions } from "./endpoints.ts";
import { ExitWith } from "./exit-with.ts";
import type { Invocation } from "./invocation.ts";

export function declare(command: Command, invocation: Invocation): void {
  command
    .description("Carries out a transaction: all of `then` if all of `if` holds, otherwise all of `else`.")
    .argument("<file>", "JSON; -: standard input");
  withDataOptions(command)
    .addHelpText("after", EXPLANATION)
    .action((file: string, options: DataOptions) => transact(file, options, invocation));
}

const EXPLANATION = `
Example:
  $ cat move.json
  { "if":   [{ "map": "stock", "key": "apples", "value": 3 }],
    "then": [{ "put": { "map": "stock", "key": "apples", "value": 2 } }, { "delete": { "map": "stock", "key": "pears" } }],
    "else": [{ "get": { "map": "stock", "key": "apples" } }] }
  $ coterie txn move.json --endpoints http://127.0.0.1:7300

A comparison has a "value", or a "revision", 0 where nothing is to stand there. What is read is printed, a line each.
With --json: { "succeeded", "revision", "results" }.
${CODES} A comparison that does not hold is 1, when \`else\` has been done.`;

async function transact(file: string, options: DataOptions, invocation: Invocation): Promise<void> {
  const transaction = readTransaction(parsed(file));
  let hasSucceeded = true;
  await asClient(options, invocation, async (client, { timeoutMs }) => {
    const done = await performed(serviceOf(client), { ...transaction, timeoutMs: timeoutMs ?? transaction.timeoutMs });
    hasSucceeded = done.succeeded;
    const read = done.results.flatMap(({ key, value }) => (value === undefined ? [] : [`${key} ${shown(value)}`]));
    return { json: done, text: read.join("\n") };
  });
  if (!hasSucceeded) throw new ExitWith(1, "what stands after `if` does not hold, so `else` was done");
}

function parsed(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file === "-" ? 0 : file, "utf8"));
  } catch (error) {
    throw new UsageError("bad-argument", `expected ${file} to be a file of JSON: ${(error as Error).message}`);
  }
}
