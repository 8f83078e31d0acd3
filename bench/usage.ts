/** `--help`: says what a benchmark takes, and ends. The note comes last. */
export function helpIfAsked(
  isAsked: boolean,
  name: string,
  options: Readonly<Record<string, string>>,
  note: string | null = null,
): void {
  if (!isAsked) return;
  const rows = Object.entries({ ...options, "--help": "this text" }).map(
    ([word, text]) => `  ${word.padEnd(18)}${text}`,
  );
  console.log(`Usage: coterie bench ${name} [options]\n\nOptions:\n${rows.join("\n")}`);
  if (note !== null) console.log(`\n${note}`);
  process.exit(0);
}
