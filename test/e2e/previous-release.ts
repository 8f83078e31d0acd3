/** The package as the commit before this one builds it, or as a later one might, to run its members beside this one's. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { coordinationService } from "../../src/protocols/service/coordination-service/coordination-service.ts";
import { STATE_MACHINE_VERSION } from "../../src/protocols/service/coordination-service/operations.ts";
import { OLDEST_WIRE_VERSION, WIRE_VERSION } from "../../src/runtime/transport/frames.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface Release {
  readonly commit: string;
  readonly packageUrl: string;
  /** Its command line. */
  readonly cli: string;
  readonly wire: { readonly version: number; readonly oldest: number };
}

const git = (...words: string[]): string => execFileSync("git", words, { cwd: ROOT, encoding: "utf8" }).trim();

/** What COTERIE_PREVIOUS says, or what has been committed last, or before that if nothing has changed since. Null where there is no such commit here. */
function previousCommit(): string | null {
  if (process.env.COTERIE_PREVIOUS !== undefined) return git("rev-parse", "--verify", process.env.COTERIE_PREVIOUS);
  try {
    const hasChanged = git("status", "--porcelain", "--", "src", "package.json") !== "";
    return git("rev-parse", "--verify", "--quiet", hasChanged ? "HEAD" : "HEAD^");
  } catch {
    return null;
  }
}

const SOURCES = ["src", "package.json", "tsconfig.json", "tsconfig.build.json"];

/**
 * Builds the commit before this one into `folder`; null where there is none, as in a package or a shallow clone.
 * @throws Error instead where CI is set: nobody reads there that a test was skipped, so it would pass for ever.
 */
export function previousRelease(
  folder: string,
  commit = previousCommit(),
  isRequired = process.env.CI !== undefined,
): Release | null {
  if (commit === null && isRequired)
    throw new Error(
      "expected a commit before this one, since CI is set, got a clone that ends here: fetch two commits or more (git fetch --deepen 1; fetch-depth: 2), or name one in COTERIE_PREVIOUS",
    );
  if (commit === null) return null;
  const root = join(folder, "previous-release");
  mkdirSync(root);
  const archive = execFileSync("git", ["archive", "--format=tar", commit, ...SOURCES], {
    cwd: ROOT,
    maxBuffer: 2 ** 28,
  });
  execFileSync("tar", ["-x", "-C", root], { input: archive });
  return { commit, ...built(root) };
}

/** Whether its members have a wire version in common with this release's. */
export const mixes = ({ wire }: Release): boolean => wire.version >= OLDEST_WIRE_VERSION && wire.oldest <= WIRE_VERSION;

/** Whether its members and this release's hear each other about shared state: docs/compatibility.md. */
export async function sharesState({ packageUrl }: Release): Promise<boolean> {
  const place = "protocols/service/coordination-service";
  const [{ STATE_MACHINE_VERSION: version }, { coordinationService: theirs }] = (await Promise.all(
    ["operations.js", "coordination-service.js"].map((file) => import(new URL(`${place}/${file}`, packageUrl).href)),
  )) as [{ STATE_MACHINE_VERSION: number }, { coordinationService: typeof coordinationService }];
  const shapeOf = (service: typeof coordinationService): string =>
    JSON.stringify(service({ log: { voters: [1, 2, 3] } }).shapes.message);
  return version === STATE_MACHINE_VERSION && shapeOf(theirs) === shapeOf(coordinationService);
}

function built(root: string): Omit<Release, "commit"> {
  symlinkSync(join(ROOT, "node_modules"), join(root, "node_modules"));
  execFileSync(join(ROOT, "node_modules/.bin/tsc"), ["-p", "tsconfig.build.json"], { cwd: root });
  const frames = readFileSync(join(root, "dist/runtime/transport/frames.js"), "utf8");
  const version = constant(frames, "WIRE_VERSION") ?? 1;
  return {
    packageUrl: pathToFileURL(join(root, "dist/index.js")).href,
    cli: join(root, "dist/cli/coterie.js"),
    wire: { version, oldest: constant(frames, "OLDEST_WIRE_VERSION") ?? version },
  };
}

function constant(source: string, name: string): number | null {
  const found = new RegExp(`^export const ${name} = (\\d+);`, "m").exec(source);
  return found === null ? null : Number(found[1]);
}
