/** The models by name: one line each. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { Model } from "../model.ts";
import { counter } from "./counter.ts";
import { lock } from "./lock.ts";
import { map } from "./map.ts";
import { queue } from "./queue.ts";
import { register } from "./register.ts";

const models: Readonly<Record<string, () => Model>> = {
  register,
  map,
  queue,
  lock,
  counter,
};

export const modelNames: readonly string[] = Object.keys(models);

/** @throws UsageError for a name that is not in `modelNames`. */
export function modelNamed(name: string): Model {
  const model = Object.hasOwn(models, name) ? models[name] : undefined;
  if (model === undefined) throw new UsageError("unknown-model", unexpected("model", modelNames.join(", "), name));
  return model();
}

export { counter, lock, map, queue, register };
