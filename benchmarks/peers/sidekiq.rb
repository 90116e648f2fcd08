# Sidekiq: one process of 10 threads.
#
#     sidekiq -r ./sidekiq.rb -c 10
#     ruby sidekiq.rb enqueue <count>

require "sidekiq"

url = ENV.fetch("BENCHMARK_URL").split("?").first
Sidekiq.configure_server { |config| config.redis = { url: url } }
Sidekiq.configure_client { |config| config.redis = { url: url } }
Sidekiq.logger.level = Logger::WARN

def seconds
  Process.clock_gettime(Process::CLOCK_MONOTONIC) # as Python's
end

class Noop
  include Sidekiq::Worker

  def perform; end
end

class Note
  include Sidekiq::Worker

  def perform(name)
    folder = ENV.fetch("BENCHMARK_FOLDER")
    File.write(File.join(folder, ".#{name}"), seconds.to_s)
    File.rename(File.join(folder, ".#{name}"), File.join(folder, name))
  end
end

if ARGV[0] == "enqueue"
  Sidekiq.redis(&:ping)
  began = seconds
  Note.perform_async("first")
  (ARGV[1].to_i - 2).times { Noop.perform_async }
  Note.perform_async("last")
  puts seconds - began
end
