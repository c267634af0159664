// Sends requests with Node's two HTTP clients. Standard input: [{client, method, url, headers, body}], all sent at once.
// Standard output: [{status, headers: [[name, value]], body}], in the same order, bodies in base64.
import http from 'node:http';

async function withFetch({method, url, headers, body}) {
  const response = await fetch(url, {method, headers, body});
  const bytes = Buffer.from(await response.arrayBuffer());
  return {status: response.status, headers: [...response.headers], body: bytes.toString('base64')};
}

function withHttp({method, url, headers, body}) {
  return new Promise((resolve, reject) => {
    const request = http.request(url, {method, headers}, (response) => {
      const pieces = [];
      response.on('data', (piece) => pieces.push(piece));
      response.on('error', reject);
      response.on('end', () => {
        const pairs = [];
        for (let i = 0; i < response.rawHeaders.length; i += 2)
          pairs.push([response.rawHeaders[i], response.rawHeaders[i + 1]]);
        resolve({status: response.statusCode, headers: pairs, body: Buffer.concat(pieces).toString('base64')});
      });
    });
    request.on('error', reject);
    request.end(body);
  });
}

let text = '';
for await (const piece of process.stdin) text += piece;
const answers = JSON.parse(text).map((request) => (request.client === 'fetch' ? withFetch : withHttp)(request));
process.stdout.write(JSON.stringify(await Promise.all(answers)));
