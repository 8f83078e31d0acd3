import { fitted, wrapped } from "../src/experiment/paragraph.ts";

/** `--help`: says what a benchmark takes, and ends. The note comes last. */
export function helpIfAsked(
  isAsked: boolean,
  name: string,
  options: Readonly<Record<string, string>>,
  note: string | null = null,
): void {
  if (!isAsked) return;
  const rows = Object.entries({ ...options, "--help": "this text" }).map(
    ([word, text]) => `  ${word.padEnd(18)}${wrapped(text, 20)}`,
  );
  console.log(`Usage: coterie bench ${name} [options]\n\nOptions:\n${rows.join("\n")}`);
  if (note !== null) console.log(`\n${fitted(note)}`);
  process.exit(0);
}
