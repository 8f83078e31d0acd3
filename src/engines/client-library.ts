/** Client libraries of engines are optional: each is loaded when its engine is joined. */
import { UsageError } from "../core/errors.ts";

/** @throws UsageError `no-library` with the command that installs it. */
export async function clientLibrary<T>(name: string, engine: string): Promise<T> {
  try {
    return (await import(name)) as T;
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ERR_MODULE_NOT_FOUND") throw error;
    const text = `expected the package ${name} to be installed, which the engine ${engine} uses: npm install ${name}`;
    throw new UsageError("no-library", text, { cause: error });
  }
}
