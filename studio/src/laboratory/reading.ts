/** Reads a file that somebody has chosen. */

interface Chosen extends Pick<Blob, "size" | "slice"> {
  readonly name: string;
}

/**
 * The text of a file, or of its beginning if it is larger than `most` bytes. It is read at once: a browser refuses a file
 * that has changed since it was chosen.
 * @throws Error that says what to do
 */
export async function textOf(file: Chosen, most: number): Promise<string> {
  try {
    return await file.slice(0, most).text();
  } catch (error) {
    const { name, message } = error as Error;
    const sentence =
      name === "NotReadableError"
        ? "the file changed after it was chosen, so the browser does not read it. If a program still writes it, open a copy, or choose it again"
        : message;
    throw new Error(`${file.name}: ${sentence}`, { cause: error });
  }
}
