import { ApiError, missingBody } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { type JsonValue, parseJson } from '../../src/base/json.ts';
import { JsonSyntaxError } from '../../src/base/json-scanner.ts';

/** A small JSON body, or 400 with the place where it stops being JSON. */
export function readBody(body: Uint8Array): JsonValue {
  if (body.byteLength === 0) throw missingBody();
  try {
    return parseJson(body, { depthMax: limits.jsonDepthMax, valuesMax: limits.jsonValuesMax });
  } catch (error) {
    if (error instanceof JsonSyntaxError)
      throw new ApiError('bad_request', `the body is not JSON: ${error.message}`);
    throw error;
  }
}
