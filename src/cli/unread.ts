/** Output that nobody reads any more, such as into `head` once it has its lines: who would go on for long stops then. */

/** @returns what ends listening. */
export function onceUnread(stop: () => void): () => void {
  process.stdout.once("error", stop);
  return () => process.stdout.off("error", stop);
}
