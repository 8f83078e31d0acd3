/** Reduces a picture of a page to at most 256 colors, which saves three quarters of the bytes. */
import { crc32, deflateSync } from "node:zlib";
import type { Browser } from "playwright-core";

interface Indexed {
  readonly width: number;
  readonly height: number;
  /** Red, green and blue of each color. */
  readonly palette: readonly number[];
  /** For each pixel: the index of its color in the palette, in base 64. */
  readonly pixels: string;
}

/**
 * Runs in the page, which can decode pictures. Colors are distinguished by five bits per channel. The 256 most frequent
 * ones are kept, and each other color is replaced by the nearest of them.
 */
const INDEXED = `async (base64) => {
  const blob = await (await fetch("data:image/png;base64," + base64)).blob();
  const image = await createImageBitmap(blob);
  const { width, height } = image;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  const boxes = new Map();
  const boxAt = (at) => ((data[at] >> 3) << 10) | ((data[at + 1] >> 3) << 5) | (data[at + 2] >> 3);
  for (let at = 0; at < data.length; at += 4) {
    const key = boxAt(at);
    const box = boxes.get(key) ?? { count: 0, colours: new Map() };
    const colour = (data[at] << 16) | (data[at + 1] << 8) | data[at + 2];
    box.count++;
    box.colours.set(colour, (box.colours.get(colour) ?? 0) + 1);
    boxes.set(key, box);
  }
  const rgbOf = (colour) => [colour >> 16, (colour >> 8) & 255, colour & 255];
  const entries = [...boxes].sort(([, a], [, b]) => b.count - a.count);
  const colours = entries.map(([, box]) => rgbOf([...box.colours].sort((a, b) => b[1] - a[1])[0][0]));
  const palette = colours.slice(0, 256);
  const far = (a, b) => (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2;
  const placeOf = new Map(entries.map(([key], place) => {
    if (place < 256) return [key, place];
    const away = palette.map((each) => far(each, colours[place]));
    return [key, away.indexOf(Math.min(...away))];
  }));
  let text = "";
  for (let at = 0; at < data.length; at += 4) text += String.fromCharCode(placeOf.get(boxAt(at)));
  return { width, height, palette: palette.flat(), pixels: btoa(text) };
}`;

/**
 * @param png a PNG that the browser can decode
 * @returns the same picture with a palette
 */
export async function smallPng(browser: Browser, png: Buffer): Promise<Buffer> {
  const page = await browser.newPage();
  try {
    const indexed = await page.evaluate<Indexed>(`(${INDEXED})(${JSON.stringify(png.toString("base64"))})`);
    return encoded(indexed);
  } finally {
    await page.close();
  }
}

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const [BITS_EACH, WITH_PALETTE] = [8, 3];

function encoded({ width, height, palette, pixels }: Indexed): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([BITS_EACH, WITH_PALETTE], 8);
  const places = Buffer.from(pixels, "base64");
  // Each row begins with its filter type: none.
  const rows = Buffer.alloc((width + 1) * height);
  for (let row = 0; row < height; row++) places.copy(rows, row * (width + 1) + 1, row * width, (row + 1) * width);
  return Buffer.concat([
    SIGNATURE,
    chunk("IHDR", header),
    chunk("PLTE", Buffer.from(palette)),
    chunk("IDAT", deflateSync(rows, { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type: string, content: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), content]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(content.length);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}
