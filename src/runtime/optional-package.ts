/** Loads optional packages. A package that only one feature needs is loaded when that feature is first used. */
import { UsageError } from "../core/errors.ts";

/**
 * @param use the feature, such as `serves etcd's API`
 * @throws UsageError `no-library` if a package is missing. The message contains the command that installs it.
 */
export async function optionalPackage<T>(names: readonly string[], use: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ERR_MODULE_NOT_FOUND") throw error;
    const what = `${names.length === 1 ? "package" : "packages"} ${names.join(" and ")}`;
    const text = `expected the ${what}, which ${use}, to be installed: npm install ${names.join(" ")}`;
    throw new UsageError("no-library", text, { cause: error });
  }
}
