/** The command that shows one of several runs, line by line. `words` are those of the command that made all of them. */
export function replayCommand(words: readonly string[], seed: number): string {
  const kept = words.filter((word, i) => {
    const isValue = words[i - 1] === "--runs" || words[i - 1] === "--seed";
    return !isValue && !/^--(?:runs|seed|json)(?:=|$)/.test(word);
  });
  return ["coterie", ...kept, "--seed", String(seed), "--log"].map(quoted).join(" ");
}

const quoted = (word: string): string => (/^[\w./:,=@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
