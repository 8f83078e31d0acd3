/** The m-dimensional space in which nodes have their places: the unit torus of Ratnasamy et al., "CAN", SIGCOMM 2001. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import { hash } from "../../../core/plain.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { list, real, type Shape } from "../../../core/shape.ts";
import { count, option, type ValuesOf } from "../../options.ts";

export type Point = readonly number[];

export interface Space {
  readonly dimensions: number;
  pointOf(node: NodeId): Point;
  distance(from: Point, to: Point): number;
  /** The shortest way, as a vector. */
  way(from: Point, to: Point): number[];
  /** Where one comes to. */
  moved(from: Point, by: Point): number[];
}

export const spaceOptions = {
  dimensions: count(2, "the dimensions of the space"),
  positions: option(
    list(list(real, 16), 1_000_000) as Shape<readonly Point[]>,
    [],
    "the coordinates by node id, in [0, 1); empty: hashes of node ids",
  ),
};

type SpaceOptions = ValuesOf<typeof spaceOptions>;

const HASHES = 2 ** 53;

export function space({ dimensions, positions }: SpaceOptions): Space {
  const stray = positions.find((point) => point.length !== dimensions || point.some((x) => !(x >= 0 && x < 1)));
  if (stray !== undefined)
    throw new UsageError(
      "bad-option",
      unexpected("super-peer-tokens.positions", `${dimensions} numbers in [0, 1)`, stray),
    );
  const known = new Map<NodeId, Point>();

  function pointOf(node: NodeId): Point {
    let point = known.get(node);
    if (point === undefined) {
      point =
        positions.length > 0
          ? given(node)
          : Array.from({ length: dimensions }, (_, axis) => hash([node, axis]) / HASHES);
      known.set(node, point);
    }
    return point;
  }

  function given(node: NodeId): Point {
    const point = positions[node];
    if (point !== undefined) return point;
    throw new UsageError(
      "bad-option",
      unexpected("super-peer-tokens.positions", `one for node ${node} too`, positions),
    );
  }

  function distance(from: Point, to: Point): number {
    let sum = 0;
    for (let axis = 0; axis < dimensions; axis++) {
      const way = span(from[axis] as number, to[axis] as number);
      sum += way * way;
    }
    return Math.sqrt(sum);
  }

  return {
    dimensions,
    pointOf,
    distance,
    way: (from, to) => from.map((x, axis) => span(x, to[axis] as number)),
    moved: (from, by) => from.map((x, axis) => wrapped(x + (by[axis] as number))),
  };
}

/** On a circle of length 1, between −½ and ½. */
function span(from: number, to: number): number {
  const way = to - from;
  return way > 0.5 ? way - 1 : way < -0.5 ? way + 1 : way;
}

const wrapped = (x: number): number => x - Math.floor(x);
