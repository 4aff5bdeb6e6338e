import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  type GetObjectCommandInput,
  type GetObjectCommandOutput,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  type S3ClientConfig,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { must } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { assertKey, assertListing, assertRange, concatenate, cutRange } from './keys.ts';
import type {
  ByteRange,
  CallOptions,
  GetOptions,
  ListOptions,
  ListPage,
  ListUploadsOptions,
  ObjectStore,
  PutResult,
  StoredObject,
  StoreError,
  StreamResult,
  Upload,
  UploadPage,
} from './object-store.ts';
import { failureOf, isMissingKey, isMissingUpload, statusOf } from './s3-errors.ts';
import { putS3Stream, type S3StreamCalls, UploadGone } from './s3-multipart.ts';
import { type StoreCall, StoreCalls } from './store-calls.ts';

/** The whole call with its retries: S3's slowest percentile is well under a second, a 64 MB body takes a few. */
export const s3TimeoutMsDefault = 30_000;
/** To the nearest S3 a connection takes some milliseconds. */
export const s3ConnectTimeoutMs = 3_000;
/** Beyond it requests wait for a connection; S3 likes many, the operating system's limit of open files does not. */
export const s3SocketsMax = 256;
/** Sends of a GET, LIST or DELETE, which may be repeated freely. A conditional PUT is sent once. */
export const s3ReadAttemptsMax = 3;

export interface S3Settings {
  /** Absent: the region's own at AWS. */
  readonly endpoint?: string | undefined;
  readonly region: string;
  readonly bucket: string;
  /** Both absent: the SDK's own chain of environment, files and machine roles. */
  readonly accessKeyId?: string | undefined;
  readonly secretAccessKey?: string | undefined;
  /** The bucket in the path, not in the host name: what most stores other than AWS need. */
  readonly forcePathStyle: boolean;
}

/**
 * The door to the AWS SDK: a bucket of an S3-compatible store. Loading the SDK takes a good part of a second, so this
 * file is imported only by `import()`, where S3 was asked for.
 *
 * An etag is what the store calls so: a digest of the bytes at most of them.
 */
export class S3ObjectStore implements ObjectStore {
  readonly #bucket: string;
  readonly #calls: StoreCalls;
  readonly #clock: Clock;
  /** For what may be repeated. */
  readonly #reader: S3Client;
  /** For conditional writes: a repeated one could be refused by its own first sending. */
  readonly #writer: S3Client;

  constructor(settings: S3Settings, clock: Clock, timeoutMs = s3TimeoutMsDefault) {
    this.#bucket = settings.bucket;
    this.#clock = clock;
    this.#calls = new StoreCalls(clock, timeoutMs);
    const config = clientConfig(settings);
    this.#reader = new S3Client({ ...config, maxAttempts: s3ReadAttemptsMax });
    this.#writer = new S3Client({
      ...config,
      maxAttempts: 1,
      // One pool of connections for both.
      requestHandler: this.#reader.config.requestHandler,
    });
  }

  async get(key: string, options?: GetOptions): Promise<StoredObject | null> {
    assertKey(key);
    assertRange(options?.range);
    return this.#calls.read('get', key, options?.timeoutMs, async (call) => {
      try {
        return await this.#getObject(call, key, {}, options?.range);
      } catch (error) {
        if (isMissingKey(error)) return null;
        // The range begins beyond the end.
        if (options?.range && statusOf(error) === 416) return this.#head(call, key);
        throw this.#failure(error, 'get', key, 'read');
      }
    });
  }

  async getIfChanged(
    key: string,
    etag: string,
    options?: CallOptions,
  ): Promise<StoredObject | 'unchanged' | null> {
    assertKey(key);
    return this.#calls.read('get', key, options?.timeoutMs, async (call) => {
      try {
        return await this.#getObject(call, key, { IfNoneMatch: etag });
      } catch (error) {
        if (isMissingKey(error)) return null;
        if (statusOf(error) === 304) return 'unchanged';
        throw this.#failure(error, 'get', key, 'read');
      }
    });
  }

  async putIfAbsent(key: string, bytes: readonly Uint8Array[], options?: CallOptions): Promise<PutResult> {
    assertKey(key);
    return this.#put('create', key, bytes, { IfNoneMatch: '*' }, options);
  }

  async putIfMatch(
    key: string,
    bytes: readonly Uint8Array[],
    etag: string,
    options?: CallOptions,
  ): Promise<PutResult> {
    assertKey(key);
    return this.#put('update', key, bytes, { IfMatch: etag }, options);
  }

  async putStream(
    key: string,
    chunks: AsyncIterable<Uint8Array>,
    options?: CallOptions,
  ): Promise<StreamResult> {
    assertKey(key);
    return putS3Stream(this.#streamCalls(key, options), chunks);
  }

  async listUploads(prefix: string, options: ListUploadsOptions): Promise<UploadPage> {
    const { after, limit, timeoutMs } = options;
    assertListing(prefix, { limit });
    return this.#calls.read('list-uploads', prefix, timeoutMs, async (call) => {
      try {
        const command = new ListMultipartUploadsCommand({
          Bucket: this.#bucket,
          Prefix: prefix,
          MaxUploads: limit,
          ...(after === undefined ? {} : { KeyMarker: after.key, UploadIdMarker: after.uploadId }),
        });
        const page = await this.#reader.send(command, { abortSignal: call.signal });
        const uploads = (page.Uploads ?? []).map(({ Key, UploadId, Initiated }) => ({
          key: must(Key, 'key of an upload'),
          uploadId: must(UploadId, 'id of an upload'),
          startedAtMs: must(Initiated, 'time of an upload').getTime(),
        }));
        return { uploads, more: page.IsTruncated === true };
      } catch (error) {
        throw this.#failure(error, 'list-uploads', prefix, 'read');
      }
    });
  }

  async abortUpload({ key, uploadId }: Upload, options?: CallOptions): Promise<void> {
    assertKey(key);
    const Upload = { Bucket: this.#bucket, Key: key, UploadId: uploadId };
    await this.#calls.write('abort-upload', key, options?.timeoutMs, async (call) => {
      try {
        await this.#reader.send(new AbortMultipartUploadCommand(Upload), { abortSignal: call.signal });
      } catch (error) {
        if (!isMissingUpload(error)) throw this.#failure(error, 'abort-upload', key, 'write');
      }
    });
  }

  /** Each is sent once, so that its outcome is that of one sending. */
  #streamCalls(key: string, options: CallOptions | undefined): S3StreamCalls {
    const place = { Bucket: this.#bucket, Key: key };
    const send = <T>(kind: 'read' | 'write', work: (abort: { abortSignal: AbortSignal }) => Promise<T>) =>
      this.#calls[kind]('stream', key, options?.timeoutMs, async ({ signal }) => {
        try {
          return await work({ abortSignal: signal });
        } catch (error) {
          const failure = this.#failure(error, 'stream', key, kind);
          if (!isMissingUpload(error)) throw failure;
          throw new UploadGone('stream', key, 'not-applied', 'failed', { cause: failure.cause });
        }
      });
    return {
      clock: this.#clock,
      isClosed: () => this.#calls.isClosed,
      find: () => this.#calls.read('stream', key, options?.timeoutMs, (call) => this.#head(call, key)),
      create: (bytes) => this.#put('stream', key, [bytes], { IfNoneMatch: '*' }, options),
      begin: () =>
        send('read', async (abort) => {
          const begun = await this.#writer.send(new CreateMultipartUploadCommand(place), abort);
          return must(begun.UploadId, 'id of an upload');
        }),
      // As a read: parts are no object.
      part: (UploadId, PartNumber, Body) =>
        send('read', async (abort) => {
          const command = new UploadPartCommand({ ...place, UploadId, PartNumber, Body });
          return must((await this.#writer.send(command, abort)).ETag, 'etag of a part');
        }),
      complete: (UploadId, etags) =>
        send('write', async (abort) => {
          const Parts = etags.map((ETag, at) => ({ ETag, PartNumber: at + 1 }));
          const MultipartUpload = { Parts };
          const command = new CompleteMultipartUploadCommand({ ...place, UploadId, MultipartUpload });
          return (await this.#writer.send(command, abort)).ETag || null;
        }),
      abort: (uploadId) => this.abortUpload({ key, uploadId, startedAtMs: 0 }, options),
    };
  }

  async delete(key: string, options?: CallOptions): Promise<void> {
    assertKey(key);
    await this.#calls.write('delete', key, options?.timeoutMs, async (call) => {
      try {
        const command = new DeleteObjectCommand({ Bucket: this.#bucket, Key: key });
        await this.#reader.send(command, { abortSignal: call.signal });
      } catch (error) {
        if (!isMissingKey(error)) throw this.#failure(error, 'delete', key, 'write');
      }
    });
  }

  async list(prefix: string, options: ListOptions): Promise<ListPage> {
    assertListing(prefix, options);
    return this.#calls.read('list', prefix, options.timeoutMs, async (call) => {
      try {
        const command = new ListObjectsV2Command({
          Bucket: this.#bucket,
          Prefix: prefix,
          MaxKeys: options.limit,
          ...(options.after ? { StartAfter: options.after } : {}),
        });
        const page = await this.#reader.send(command, { abortSignal: call.signal });
        const objects = (page.Contents ?? []).map(({ Key, Size, LastModified }) => ({
          key: must(Key, 'listed key'),
          size: Size ?? 0,
          modifiedAtMs: must(LastModified, 'time of a listed key').getTime(),
        }));
        return { objects, more: page.IsTruncated === true };
      } catch (error) {
        throw this.#failure(error, 'list', prefix, 'read');
      }
    });
  }

  async close(): Promise<void> {
    this.#calls.close();
    this.#reader.destroy();
    this.#writer.destroy();
  }

  #failure(error: unknown, operation: string, key: string, kind: 'read' | 'write'): StoreError {
    return failureOf(error, `bucket ${this.#bucket}`, operation, key, kind);
  }

  async #put(
    operation: string,
    key: string,
    parts: readonly Uint8Array[],
    condition: { readonly IfNoneMatch: string } | { readonly IfMatch: string },
    options: CallOptions | undefined,
  ): Promise<PutResult> {
    return this.#calls.write(operation, key, options?.timeoutMs, async (call) => {
      try {
        const command = new PutObjectCommand({
          Bucket: this.#bucket,
          Key: key,
          Body: concatenate(parts),
          ...condition,
        });
        const stored = await this.#writer.send(command, { abortSignal: call.signal });
        return { kind: 'stored', etag: must(stored.ETag, 'etag of a stored object') };
      } catch (error) {
        const refused = statusOf(error) === 412 || ('IfMatch' in condition && isMissingKey(error));
        if (refused) return { kind: 'refused' };
        throw this.#failure(error, operation, key, 'write');
      }
    });
  }

  async #getObject(
    call: StoreCall,
    key: string,
    condition: Pick<GetObjectCommandInput, 'IfNoneMatch'>,
    range?: ByteRange,
  ): Promise<StoredObject> {
    const Range = range && { Range: rangeHeader(range) };
    for (let attempt = 1; ; attempt++) {
      const command = new GetObjectCommand({ Bucket: this.#bucket, Key: key, ...condition, ...Range });
      const answer = await this.#reader.send(command, { abortSignal: call.signal });
      try {
        return await storedObject(answer, range);
      } catch (error) {
        // The SDK repeats a request, not the reading of an answer's body.
        if (attempt === s3ReadAttemptsMax || call.signal.aborted) throw error;
      }
    }
  }

  async #head(call: StoreCall, key: string): Promise<StoredObject | null> {
    try {
      const command = new HeadObjectCommand({ Bucket: this.#bucket, Key: key });
      const head = await this.#reader.send(command, { abortSignal: call.signal });
      return {
        bytes: new Uint8Array(0),
        etag: must(head.ETag, 'etag'),
        size: must(head.ContentLength, 'size'),
      };
    } catch (error) {
      // A HEAD has no body to name the code in; the range's answer has just said that the bucket is there.
      if (statusOf(error) === 404) return null;
      throw this.#failure(error, 'get', key, 'read');
    }
  }
}

function clientConfig(settings: S3Settings): S3ClientConfig {
  const { endpoint, accessKeyId, secretAccessKey } = settings;
  const agent = { keepAlive: true, maxSockets: s3SocketsMax };
  return {
    region: settings.region,
    forcePathStyle: settings.forcePathStyle,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // A pause for "100 Continue" would cost a round trip and a connection of its own at each larger PUT.
    expectContinueHeader: false,
    requestHandler: {
      httpAgent: agent,
      httpsAgent: agent,
      connectionTimeout: s3ConnectTimeoutMs,
      logger: silent,
    },
    logger: silent,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(accessKeyId && secretAccessKey ? { credentials: { accessKeyId, secretAccessKey } } : {}),
  };
}

/** The SDK would write to the console; what fails is thrown anyway. */
const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

function rangeHeader(range: ByteRange): string {
  if ('suffix' in range) return `bytes=-${range.suffix}`;
  return `bytes=${range.offset}-${range.offset + range.length - 1}`;
}

async function storedObject(
  answer: GetObjectCommandOutput,
  range: ByteRange | undefined,
): Promise<StoredObject> {
  const bytes = await readBody(answer);
  const etag = must(answer.ETag, 'etag of an object');
  const total = /\/(\d+)$/.exec(answer.ContentRange ?? '')?.[1];
  if (range === undefined || total !== undefined) return { bytes, etag, size: Number(total ?? bytes.length) };
  // The store answered with the whole object.
  const { offset, length } = cutRange(range, bytes.length);
  return { bytes: bytes.slice(offset, offset + length), etag, size: bytes.length };
}

/** The body in one array of its own memory, which the caller may hand to another thread. */
async function readBody(answer: GetObjectCommandOutput): Promise<Uint8Array> {
  const length = must(answer.ContentLength, 'length of an object');
  const bytes = new Uint8Array(length);
  let done = 0;
  for await (const chunk of answer.Body as AsyncIterable<Uint8Array>) {
    if (done + chunk.length > length) throw new Error('the body is longer than its head says');
    bytes.set(chunk, done);
    done += chunk.length;
  }
  if (done < length) throw new Error(`the body ended after ${done} of ${length} bytes`);
  return bytes;
}
