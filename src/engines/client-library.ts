/** Client libraries of engines are optional: each is loaded when its engine is joined. */
import { optionalPackage } from "../runtime/optional-package.ts";

/** @throws UsageError `no-library` with the command that installs it. */
export const clientLibrary = <T>(name: string, engine: string): Promise<T> =>
  optionalPackage([name], `the engine ${engine} uses`, () => import(name) as Promise<T>);
