# Fibers, threads, a stack that is full, exceptions out of blocks, a child that is killed.
def deep(n) = deep(n + 1) + 1
begin
  deep(0)
rescue SystemStackError => e
  puts "full: #{e.message}"
end
fibers = 50.times.map { |i| Fiber.new { 20.times { |j| Fiber.yield("x" * 40_000 * (j + 1)) }; i } }
sum = 0
20.times { fibers.each { |f| sum += f.resume.size } }
puts sum
puts 8.times.map { |i| Thread.new { "y" * (100_000 + i) } }.sum { |t| t.value.size }
pid = fork { Process.kill(:KILL, Process.pid) }
Process.wait(pid)
puts "child #{$?.termsig}"
puts `echo from a shell`
begin
  nil.size
rescue NoMethodError => e
  puts e.class
end
GC.start
exit 6
