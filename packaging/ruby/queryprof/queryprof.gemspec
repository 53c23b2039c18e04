# SPDX-License-Identifier: Apache-2.0
# frozen_string_literal: true

Gem::Specification.new do |spec|
  spec.name = 'queryprof'
  spec.version = 'VERSION'
  spec.platform = 'PROCESSOR-linux'
  spec.summary = 'Where the time of your SQLite queries goes: a sampling profiler inside the process'
  spec.authors = ['queryprof']
  spec.license = 'Apache-2.0'
  spec.required_ruby_version = '>= 2.7'
  spec.bindir = 'exe'
  spec.executables = ['queryprof']
  spec.files = Dir['{exe,lib,vendor}/**/*', 'LICENSE'].select { |path| File.file?(path) }.sort
end
