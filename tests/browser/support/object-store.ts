/** An object store in memory, with the part of the interface of S3 that a replica needs. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An object, with the time of its last write. */
interface StoredObject {
  body: Buffer;
  tag: string;
  modified: Date;
}

/** The address of the bucket for `--store`. */
export const bucketAddress = 's3://fleet/sites';

/** The path of the bucket. */
const BUCKET = '/fleet/';

/** The place of the objects of the bucket address in the bucket. */
const PREFIX = 'sites/';

export class ObjectStore {
  readonly #objects = new Map<string, StoredObject>();
  readonly #server = createServer((request, response) => this.#answer(request, response));

  /** Starts the store on a free port. */
  async start(): Promise<void> {
    await new Promise<void>((done) => this.#server.listen(0, '127.0.0.1', done));
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** The variables with which a program finds the store. */
  get variables(): Record<string, string> {
    return {
      AWS_ENDPOINT_URL: `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`,
      AWS_ALLOW_HTTP: 'true',
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: 'rowhouse',
      AWS_SECRET_ACCESS_KEY: 'secret',
    };
  }

  /** Writes an object below the bucket address, as if this number of seconds ago. */
  write(name: string, body: string, secondsAgo: number): void {
    this.#put(PREFIX + name, Buffer.from(body), new Date(Date.now() - 1_000 * secondsAgo));
  }

  #put(name: string, body: Buffer, modified: Date): string {
    const tag = `"${createHash('md5').update(body).digest('hex')}"`;
    this.#objects.set(name, { body, tag, modified });
    return tag;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const url = new URL(request.url ?? '/', 'http://store');
      const name = decodeURIComponent(url.pathname.slice(BUCKET.length));
      const found = this.#objects.get(name);
      const { 'if-match': expected, 'if-none-match': known } = request.headers;
      if (request.method === 'GET' && name === '') {
        this.#list(url.searchParams.get('prefix') ?? '', response);
      } else if (request.method === 'PUT') {
        const isRefused = (known === '*' && found) || (expected && found?.tag !== expected);
        if (isRefused) response.writeHead(412).end();
        else response.setHeader('etag', this.#put(name, Buffer.concat(parts), new Date())).end();
      } else if (request.method === 'DELETE') {
        this.#objects.delete(name);
        response.writeHead(204).end();
      } else if (!found) {
        response.writeHead(404).end();
      } else {
        response.setHeader('etag', found.tag);
        response.setHeader('last-modified', found.modified.toUTCString());
        if (known === found.tag) response.writeHead(304).end();
        else response.setHeader('content-length', found.body.length).end(found.body);
      }
    });
  }

  #list(prefix: string, response: ServerResponse): void {
    const listed = [...this.#objects].filter(([name]) => name.startsWith(prefix)).sort();
    const contents = listed.map(
      ([name, { body, tag, modified }]) =>
        `<Contents><Key>${name}</Key><LastModified>${modified.toISOString()}</LastModified>` +
        `<ETag>${tag.replaceAll('"', '&quot;')}</ETag><Size>${body.length}</Size></Contents>`,
    );
    response.setHeader('content-type', 'application/xml');
    response.end(
      `<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>${contents.join('')}</ListBucketResult>`,
    );
  }
}
