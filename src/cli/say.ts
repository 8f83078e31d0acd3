/** What there is to say beside a command is said on stderr: stdout is the command's. */
import { errorLine } from "../experiment/paragraph.ts";

export const say = (text: string): void => void process.stderr.write(`coterie: ${errorLine(text)}\n`);
