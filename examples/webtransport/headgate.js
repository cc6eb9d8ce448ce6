// Events from a page to Headgate, in a session of headgate/1 over WebTransport (docs/quic.md).
//
//   const session = new Session("https://events.example.com:8443", "clicks", { token });
//   const outcome = await session.send([{ page: "/", at: Date.now() }]);  // stored: {accepted: 1, ...}
//   await session.close();
//
// It keeps what is not acknowledged and goes on with its session when the connection is lost, also over a restart of the gateway.

const HELLO = 1, EVENTS = 2, FIN = 3;
const WELCOME = 16, ACK = 17, RESULT = 18, REJECT = 19, CREDIT = 20, SLOWDOWN = 21, GOAWAY = 22, ERROR = 23;
const JSON_FRAMING = 2, LONGEST = 10_000;
const OVER = "over", LEFT = "left";

export const levels = { accepted: 1, durable: 2, delivered: 3 };

function varint(n) {
  const out = [];
  for (; n >= 0x80; n = Math.floor(n / 0x80)) out.push((n % 0x80) | 0x80);
  return [...out, n];
}

const encoder = new TextEncoder(), decoder = new TextDecoder();

function text(s) {
  const raw = encoder.encode(s);
  return [...varint(raw.length), ...raw];
}

function frame(type, ...payload) {
  const size = payload.reduce((n, part) => n + part.length, 0);
  const head = [...varint(type), ...varint(size)];
  const out = new Uint8Array(head.length + size);
  out.set(head);
  let at = head.length;
  for (const part of payload) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

// Incoming reads frames from a stream.
class Incoming {
  constructor(readable) {
    this.reader = readable.getReader();
    this.have = new Uint8Array(0);
  }

  // bytes returns n of them, or null where the stream has ended.
  async bytes(n) {
    while (this.have.length < n) {
      const { value, done } = await this.reader.read();
      if (done) return null;
      const more = new Uint8Array(this.have.length + value.length);
      more.set(this.have);
      more.set(value, this.have.length);
      this.have = more;
    }
    const some = this.have.subarray(0, n);
    this.have = this.have.subarray(n);
    return some;
  }

  async varint() {
    for (let value = 0, unit = 1; ; unit *= 0x80) {
      const byte = await this.bytes(1);
      if (byte === null) return null;
      value += (byte[0] & 0x7f) * unit;
      if (byte[0] < 0x80) return value;
    }
  }

  async frame() {
    const type = await this.varint();
    const size = type === null ? null : await this.varint();
    const raw = size === null ? null : await this.bytes(size);
    return raw === null ? null : { type, fields: new Fields(raw) };
  }
}

class Fields {
  constructor(raw) { this.raw = raw; this.at = 0; }

  varint() {
    for (let value = 0, unit = 1; ; unit *= 0x80) {
      const byte = this.raw[this.at++];
      value += (byte & 0x7f) * unit;
      if (byte < 0x80) return value;
    }
  }

  text() {
    const n = this.varint();
    this.at += n;
    return decoder.decode(this.raw.subarray(this.at - n, this.at));
  }
}

// Refused is an ERROR that sending again does not mend.
export class Refused extends Error {
  constructor(code, detail) { super(`${code}: ${detail}`); this.code = code; }
}

export class Session {
  // options: token, level ("durable"), source, fields ({"Headgate-Key": "k"}), and serverCertificateHashes as WebTransport takes them.
  // notice is told why events wait.
  constructor(url, stream, options = {}) {
    Object.assign(this, { url: new URL("/v1/session", url).href, stream, options });
    this.name = options.session ?? crypto.randomUUID();
    this.notice = options.notice ?? (() => {});
    this.queue = [];  // batches without an outcome, in order
    this.next = 1;    // sequence of the next event
    this.acked = 0;   // of the last one that has its outcome
    this.at = 0;      // how much of queue is sent on this stream
    this.credit = 0;
    this.wake = () => {};
    this.running = this.run();
  }

  // send takes events in order, together or not at all. It resolves when they have come as far as the session's level.
  send(events) {
    if (this.closing || this.failed) return Promise.reject(this.failed ?? new Error("the session is closed"));
    const body = events.flatMap((e) => { const raw = encoder.encode(JSON.stringify(e)); return [varint(raw.length), raw]; });
    return new Promise((resolve, reject) => {
      this.queue.push({ first: this.next, count: events.length, body, rejects: [], resolve, reject });
      this.next += events.length;
      this.wake();
    });
  }

  // close resolves when everything has its outcome.
  async close() {
    this.closing = true;
    this.wake();
    await this.running;
  }

  async run() {
    for (let n = 0; !(this.closing && this.queue.length === 0); n++) {
      const before = this.acked, began = Date.now();
      let left = false;
      try {
        const end = await this.connect();
        if (end === OVER) return;
        left = end === LEFT;
      } catch (error) {
        if (error instanceof Refused) {
          this.failed = error;
          this.queue.splice(0).forEach((batch) => batch.reject(error));
          return;
        }
        this.notice("connection", String(error));
      }
      if (this.acked > before || Date.now() - began > LONGEST) n = 0;
      if (left && n === 0) continue;  // the next connection, at once
      await new Promise((go) => setTimeout(go, Math.random() * Math.min(LONGEST, 100 * 2 ** n)));
    }
  }

  // connect has the session on one stream. It returns OVER when that has ended for good, and LEFT when the session goes on on another one;
  // then what is on its way on this stream is heard all the same.
  async connect() {
    const { serverCertificateHashes } = this.options;
    const transport = new WebTransport(this.url, serverCertificateHashes ? { serverCertificateHashes } : {});
    transport.closed.catch(() => {});
    const end = () => { try { transport.close(); } catch {} };
    try {
      await transport.ready;
      const opened = await transport.incomingBidirectionalStreams.getReader().read();  // the gateway opens it
      if (opened.done) throw new Error("the gateway opened no stream");
      const incoming = new Incoming(opened.value.readable), writer = opened.value.writable.getWriter();
      const stream = { end, away: false };
      await this.hello(incoming, writer, stream);
      this.sendAll(writer, stream).catch(() => {});  // what went wrong is seen by who reads
      const left = new Promise((resolve) => { stream.left = () => resolve(LEFT); });
      const heard = this.hear(incoming, stream).finally(() => { this.leave(stream); end(); });
      heard.catch(() => {});  // when it was left before
      return await Promise.race([heard, left]);
    } catch (error) {
      end();
      throw error;
    }
  }

  // leave has nothing more sent on a stream.
  leave(stream) {
    stream.away = true;
    this.wake();
  }

  async hello(incoming, writer, stream) {
    const { token = "", source = "", level = "durable", fields = {} } = this.options;
    const all = Object.entries(fields);
    await writer.write(frame(HELLO, [...varint(1), ...text(this.stream), ...text(this.name), ...text(token), ...text(source),
      ...varint(levels[level]), ...varint(this.acked), ...varint(all.length), ...all.flatMap(([k, v]) => [...text(k), ...text(v)])]));
    const answer = await incoming.frame();
    if (answer === null) throw new Error("the gateway went away");
    if (answer.type === ERROR) this.error(answer.fields);
    answer.fields.text();
    this.settled = answer.fields.varint();
    this.credit = answer.fields.varint();
    stream.level = answer.fields.varint();
    this.at = this.queue.findIndex((b) => b.first > this.settled);
    if (this.at < 0) this.at = this.queue.length;
    for (const batch of this.queue) batch.rejects = [];  // they are said again
    this.current?.end();  // the gateway says nothing more there
    this.current = stream;
  }

  async sendAll(writer, stream) {
    while (!stream.away) {
      const batch = this.queue[this.at];
      if (batch && this.credit > 0) {
        this.at++;
        const payload = frame(EVENTS, [...varint(batch.first), ...varint(batch.count), ...varint(JSON_FRAMING), ...varint(0)], ...batch.body);
        this.credit -= payload.length - (varint(EVENTS).length + varint(payload.length).length);
        await writer.write(payload);
        continue;
      }
      if (this.closing && !batch) {
        await writer.write(frame(FIN));
        return writer.close();
      }
      await new Promise((wake) => { this.wake = wake; });
    }
  }

  // hear takes what the gateway says. It returns OVER behind the FIN of a session that is closed. When the session is on another stream
  // already, that one says everything.
  async hear(incoming, stream) {
    for (;;) {
      const said = await incoming.frame();
      if (said === null) throw new Error("the gateway went away");
      if (this.current !== stream) return LEFT;
      const f = said.fields;
      switch (said.type) {
        case ACK: {
          const level = f.varint(), upTo = f.varint();
          if (level >= Math.min(stream.level, levels.durable)) this.settle(upTo, level, stream);
          break;
        }
        case RESULT: {
          const batch = this.find(f.varint());
          if (batch) {
            batch.result = { count: f.varint(), level: f.varint(), accepted: f.varint(), filtered: f.varint(), rejected: f.varint(),
              duplicates: f.varint(), deadlettered: f.varint() };
          }
          break;
        }
        case REJECT: {
          const seq = f.varint(), retryable = f.varint() === 1, batch = this.find(seq);
          if (batch) batch.rejects.push({ index: seq - batch.first, retryable, code: f.text(), detail: f.text() });
          break;
        }
        case CREDIT:
          this.credit += f.varint();
          this.wake();
          break;
        case SLOWDOWN:
          f.varint();
          this.notice(f.text(), f.text());
          break;
        case GOAWAY:
          this.notice("goaway", "the gateway stops, or the connection is old enough");
          this.leave(stream);
          stream.left();  // the rest goes over another connection, at once
          break;
        case FIN:
          return this.closing && this.queue.length === 0 ? OVER : LEFT;
        case ERROR:
          this.error(f);
          break;
        default:
          throw new Error(`a frame of type ${said.type}`);
      }
    }
  }

  find(seq) { return this.queue.find((b) => b.first <= seq && seq < b.first + b.count); }

  // settle ends the batches up to a sequence that have come as far as the session's level, or as their outcome says. Of those whose
  // outcome was not heard it is only known that they have one.
  settle(upTo, level, stream) {
    while (this.queue.length > 0) {
      const last = this.queue[0].first + this.queue[0].count - 1;
      if (last > upTo || level < stream.level && !this.queue[0].result && last > this.settled) break;
      const batch = this.queue.shift();
      this.at = Math.max(0, this.at - 1);
      this.acked = batch.first + batch.count - 1;
      batch.resolve({ ...batch.result, rejects: batch.rejects });
    }
    this.wake();
  }

  error(f) {
    const retryable = f.varint() === 1, code = f.text(), detail = f.text();
    throw retryable ? new Error(`${code}: ${detail}`) : new Refused(code, detail);
  }
}
