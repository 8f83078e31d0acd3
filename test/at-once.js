/**
 * Runs several commands concurrently, as `npm test` does before its tests: node test/at-once.js 'COMMAND' 'COMMAND' …
 * Prints the output of each when it has ended, and exits with 1 if one of them fails.
 */
import { spawn } from "node:child_process";

const started = process.argv.slice(2).map(
  (command) =>
    new Promise((resolve) => {
      const child = spawn(command, { shell: true, stdio: ["ignore", "pipe", "pipe"] });
      const said = [];
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => said.push(text));
      child.on("close", (code) => {
        process.stdout.write(Buffer.concat(said));
        if (code !== 0) process.stdout.write(`failed, with code ${code}: ${command}\n`);
        resolve(code === 0);
      });
    }),
);

const ended = await Promise.all(started);
process.exitCode = ended.every((isWell) => isWell) ? 0 : 1;
