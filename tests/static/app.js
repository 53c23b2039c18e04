// SPDX-License-Identifier: Apache-2.0
// The program of README's first example for node.
const { DatabaseSync } = require('node:sqlite');

const db = new DatabaseSync(':memory:');
db.exec('CREATE TABLE books(title TEXT, year INTEGER)');
const insert = db.prepare('INSERT INTO books(title, year) VALUES (?, ?)');
for (let i = 0; i < 200000; i++) insert.run('Book ' + i, 1900 + i % 124);
const count = db.prepare('SELECT year, count(*) AS n FROM books WHERE title LIKE ? GROUP BY year');
for (let i = 0; i < 20; i++) console.log(count.all('%' + i + '%').length);
