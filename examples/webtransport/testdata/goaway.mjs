// A gateway that says GOAWAY, for headgate.js: what the page sends on which of its connections. It prints "ok", or what was wrong.
import { readFileSync } from "node:fs";
import assert from "node:assert/strict";

const source = readFileSync(new URL("../headgate.js", import.meta.url));
const { Session } = await import("data:text/javascript;base64," + source.toString("base64"));

const varint = (n) => { const out = []; for (; n >= 0x80; n = Math.floor(n / 0x80)) out.push((n % 0x80) | 0x80); return [...out, n]; };
const text = (s) => [...varint(s.length), ...new TextEncoder().encode(s)];
const frame = (type, ...payload) => Uint8Array.from([...varint(type), ...varint(payload.length), ...payload]);
const WELCOME = 16, ACK = 17, RESULT = 18, REJECT = 19, GOAWAY = 22, FIN = 3;
const welcome = (settled) => frame(WELCOME, ...text("s"), ...varint(settled), ...varint(1 << 20), 2, ...varint(1 << 20), ...varint(1 << 20), ...varint(1000), ...varint(600_000));
const result = (first, rejected) => frame(RESULT, first, 1, 2, 1 - rejected, 0, rejected, 0, 0);
const reject = (seq) => frame(REJECT, seq, 0, ...text("invalid_json"), ...text("x"));

// connections are those that the page has opened; each has the frames that came, as [type, first number of the payload].
const connections = [], waiting = [];
globalThis.WebTransport = class {
  constructor() {
    const there = this, frames = [], down = new TransformStream(), heard = [];
    let left = [];
    const up = new WritableStream({ write(chunk) {
      left.push(...chunk);
      for (;;) {
        let at = 0;
        const number = () => { for (let v = 0, unit = 1; at < left.length; unit *= 0x80) { const b = left[at++]; v += (b & 0x7f) * unit; if (b < 0x80) return v; } return NaN; };
        const type = number(), size = number(), begin = at;
        if (!(left.length - at >= size)) break;
        frames.push([type, size > 0 ? number() : 0]);
        left = left.slice(begin + size);
        heard.splice(0).forEach((go) => go());
      }
    } });
    const writer = down.writable.getWriter();
    this.frames = frames;
    this.closedByPage = false;
    this.say = (bytes) => { writer.write(bytes).catch(() => {}); };
    this.end = () => { writer.close().catch(() => {}); };
    this.has = async (n) => { while (frames.length < n) await new Promise((go) => heard.push(go)); };
    this.ready = Promise.resolve();
    this.closed = new Promise(() => {});
    this.incomingBidirectionalStreams = new ReadableStream({ start(c) { c.enqueue({ readable: down.readable, writable: up }); } });
    connections.push(there);
    waiting.splice(0).forEach((go) => go());
  }
  close() { this.closedByPage = true; }
};
const connection = async (n) => { while (connections.length <= n) await new Promise((go) => waiting.push(go)); return connections[n]; };

const session = new Session("https://gateway", "s", {});
const first = await connection(0);
await first.has(1);
first.say(welcome(0));
const one = session.send([{ n: 1 }]), two = session.send([{ n: 2 }]);
await first.has(3);
first.say(frame(GOAWAY, 2));

// Another connection is there at once, though this one has not ended; nothing more is sent on this one.
const second = await connection(1);
const three = session.send([{ n: 3 }]);
await second.has(1);
assert.equal(second.frames[0][0], 1, "HELLO comes first");

// What is said on the first one still counts, until the second one takes over and says all that is not settled again.
first.say(result(1, 0));
first.say(frame(ACK, 2, 1));
assert.deepEqual((await one).accepted, 1);
first.say(reject(2));
second.say(welcome(2));
second.say(reject(2));
second.say(result(2, 1));
second.say(frame(ACK, 2, 2));
const refused = await two;
assert.equal(refused.rejected, 1);
assert.equal(refused.rejects.length, 1, "a rejected event is named once");
await second.has(2);
assert.deepEqual(second.frames[1], [2, 3], "what is new, and nothing else, is sent on the second one");
first.say(frame(FIN));
first.end();
second.say(result(3, 0));
second.say(frame(ACK, 2, 3));
await three;

// A session that is closed when it is told to leave ends when everything has its outcome.
const four = session.send([{ n: 4 }]);
await second.has(3);
const closed = session.close();
second.say(frame(GOAWAY, 4));
const third = await connection(2);
await third.has(1);
third.say(welcome(4));
third.say(result(4, 0));
third.say(frame(ACK, 2, 4));
await four;
await third.has(2);
assert.equal(third.frames[1][0], FIN);
third.say(frame(FIN));
third.end();
await closed;
assert.deepEqual(first.frames.map(([type]) => type), [1, 2, 2], "nothing is sent behind GOAWAY");
assert.ok(connections.length === 3 && connections.every((c) => c.closedByPage), "connections are closed");
console.log("ok");
process.exit(0);
